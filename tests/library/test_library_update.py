"""Library updates: changes of the source are installed, and edited libraries are not overwritten."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dittybag.domain.errors import (
    LibraryEdited,
    LibraryNotFound,
    LibraryRefused,
    LibraryUnwritable,
    Outdated,
    SourceNotFound,
)
from dittybag.library import installer
from dittybag.library.install_records import read_records
from dittybag.library.installer import UpdateResult, add, create, update
from tests.contracts.library_fixtures import LibraryClient, Machine
from tests.library.local_edits import has_local_edits
from tests.library.source_fixtures import commit, leftovers, read_files, write_files

BEFORE = {"same.md": "same", "changed.md": "1", "gone.md": "gone"}
AFTER = {"same.md": "same", "changed.md": "2", "new/one.md": "new"}


class UpdateScene:
    """A library and its source."""

    def __init__(self, folder: Path) -> None:
        self.home = str(folder / "home")
        self.source = write_files(folder / "lib", BEFORE)
        self.library = Path(add(self.home, str(self.source)).path)

    def change_source(self) -> None:
        for file in BEFORE:
            (self.source / file).unlink(missing_ok=True)
        write_files(self.source, AFTER)

    def update(self, *, overwrite: bool = False) -> UpdateResult:
        return update(self.home, "lib", overwrite=overwrite)


@pytest.fixture
def scene(tmp_path: Path) -> UpdateScene:
    return UpdateScene(tmp_path)


def test_a_library_without_edits_is_updated_to_match_its_source(scene: UpdateScene) -> None:
    scene.change_source()
    updated = scene.update()
    assert read_files(scene.library) == AFTER
    assert updated.added == ("new/one.md",)
    assert updated.changed == ("changed.md",)
    assert updated.removed == ("gone.md",)
    assert updated.kept_in is None
    assert not has_local_edits(scene.home, "lib")
    assert leftovers(Path(scene.home)) == []
    again = scene.update()
    assert (again.added, again.changed, again.removed) == ((), (), ())


def edit_content(library: Path) -> None:
    write_files(library, {"same.md": "mine"})


def add_file(library: Path) -> None:
    write_files(library, {"extra.md": "mine"})


def delete_file(library: Path) -> None:
    (library / "same.md").unlink()


def replace_by_link(library: Path) -> None:
    (library / "same.md").unlink()
    (library / "same.md").symlink_to("/etc/hostname")


def add_undecodable_name(library: Path) -> None:
    Path(os.fsdecode(os.fsencode(library) + b"/caf\xe9.md")).write_text("mine")


def add_pipe(library: Path) -> None:
    os.mkfifo(library / "pipe")


def add_repository(library: Path) -> None:
    commit(library)


EDITS = [edit_content, add_file, delete_file, replace_by_link, add_undecodable_name, add_pipe, add_repository]


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_library_is_refused_and_moved_away_on_request(
    scene: UpdateScene, edit: Callable[[Path], None]
) -> None:
    edit(scene.library)
    mine = {path.relative_to(scene.library) for path in scene.library.rglob("*")}
    scene.change_source()
    with pytest.raises(LibraryEdited, match="'lib' was edited by hand"):
        scene.update()
    assert {path.relative_to(scene.library) for path in scene.library.rglob("*")} == mine
    kept = Path(str(scene.update(overwrite=True).kept_in))
    assert kept.is_relative_to(Path(scene.home) / "libraries" / ".dittybag" / "kept" / "lib")
    assert {path.relative_to(kept) for path in kept.rglob("*")} == mine
    assert read_files(scene.library) == AFTER
    assert not has_local_edits(scene.home, "lib")


def test_edits_that_match_the_source_are_no_conflict(scene: UpdateScene) -> None:
    write_files(scene.library, {"changed.md": "2"})
    write_files(scene.source, {"changed.md": "2"})
    assert scene.update().kept_in is None
    assert not has_local_edits(scene.home, "lib")


def test_two_libraries_moved_away_in_one_second_are_both_kept(scene: UpdateScene) -> None:
    kept = set()
    for number in range(3):
        write_files(scene.library, {"same.md": f"mine {number}"})
        kept.add(scene.update(overwrite=True).kept_in)
    assert {Path(str(place), "same.md").read_text() for place in kept} == {"mine 0", "mine 1", "mine 2"}


#: Saves files by rename, as editors do, after the library was compared and before it is swapped.
LATE_EDITOR = """
import sys
from pathlib import Path
from dittybag.library.installer import update

home, place = sys.argv[1], Path(sys.argv[2])
saved = []

def save(event, arguments):
    if event == "ctypes.dlsym" and not saved:
        saved.append(event)
        for name in ("changed.md", "same.md", "late.md"):
            (place / ".draft").write_text(f"late {name}")
            (place / ".draft").rename(place / name)

sys.addaudithook(save)
updated = update(home, "lib")
assert saved
print(updated.kept_in)
"""


def test_an_edit_during_the_update_is_not_lost(scene: UpdateScene) -> None:
    scene.change_source()
    done = subprocess.run(
        [sys.executable, "-c", LATE_EDITOR, scene.home, str(scene.library)],
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    kept = read_files(Path(done.stdout.strip()))
    for name in ("changed.md", "late.md", "same.md"):
        assert kept[name] == f"late {name}"
    assert read_files(scene.library) == AFTER


def test_a_repository_is_updated_to_its_newest_commit(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    commit(tmp_path / "repository", BEFORE)
    add(home, f"file://{tmp_path / 'repository'}", name="git")
    for file in BEFORE:
        (tmp_path / "repository" / file).unlink()
    newest = commit(tmp_path / "repository", AFTER)
    assert update(home, "git").revision == newest
    assert read_files(tmp_path / "home" / "libraries" / "git") == AFTER
    assert read_records(home)["git"].revision == newest
    # A commit that changes no file of the library is recorded too.
    newest = commit(tmp_path / "repository")
    assert update(home, "git").revision == read_records(home)["git"].revision == newest


def test_a_missing_or_empty_source_does_not_change_the_library(scene: UpdateScene) -> None:
    scene.source.rename(scene.source.parent / "elsewhere")
    with pytest.raises(SourceNotFound, match="the library's source no longer exists"):
        scene.update()
    scene.source.mkdir()
    with pytest.raises(LibraryRefused, match="it has no files"):
        scene.update()
    assert read_files(scene.library) == BEFORE
    assert not has_local_edits(scene.home, "lib")
    assert leftovers(Path(scene.home)) == []


def test_a_library_without_a_source_is_not_updated(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    add(home, str(write_files(tmp_path / "linked", BEFORE)), link=True)
    create(home, "made")
    write_files(tmp_path / "home" / "libraries" / "By-Hand", BEFORE)
    assert "is always up to date" in str(update(home, "linked").note)
    assert "was created with dittybag library new" in str(update(home, "made").note)
    assert "was added by hand" in str(update(home, "by_hand").note)
    for name in ("nothing", "", "..", "../home", "---"):
        with pytest.raises(LibraryNotFound):
            update(home, name)


def test_concurrent_updates_do_not_undo_each_other(scene: UpdateScene) -> None:
    scene.change_source()
    other: list[UpdateResult] = []

    def meanwhile(line: str, done: int = 0, total: int = 0, /) -> None:
        if not other:
            other.append(scene.update())

    # Progress is reported while the source is read, after the record was read.
    write_files(scene.source, {f"{number}.md": "x" for number in range(50)})
    with pytest.raises(Outdated, match="was changed by someone else"):
        update(scene.home, "lib", progress=meanwhile)
    assert other[0].added
    assert not has_local_edits(scene.home, "lib")


#: Dies between the two renames of an update, on a system that cannot swap folders.
KILLED_UPDATE = """
import os, signal, sys
from dittybag.library.installer import update

def die(event, arguments):
    if event == "ctypes.dlsym":
        raise AttributeError
    if event == "os.rename" and str(arguments[0]).endswith("/new"):
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(die)
update(sys.argv[1], "lib")
"""


def test_a_server_finishes_an_update_that_was_cut_off(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    home = str(machine.libraries.parent)
    source = write_files(tmp_path / "lib", {"a.md": "old", "gone.md": "gone"})
    library = Path(add(home, str(source)).path)
    write_files(source, {"a.md": "new"})
    (source / "gone.md").unlink()
    killed = subprocess.run([sys.executable, "-c", KILLED_UPDATE, home], timeout=30, check=False)
    assert killed.returncode == -9
    assert not library.exists()
    with LibraryClient(machine) as client:
        assert client.names() == ["lib:a"]
        assert client.text("lib:a") == "new"
    assert leftovers(Path(home)) == []
    assert not has_local_edits(home, "lib")


class MacLibrary:
    """The C library of macOS, as far as it is used: `renamex_np`, which swaps as Linux does, or refuses."""

    def __init__(self, refusal: int) -> None:
        self.refusal = refusal
        self.flags: list[int] = []
        self._linux = ctypes.CDLL(None, use_errno=True)

    def renamex_np(self, first: bytes, second: bytes, flags: Any) -> int:
        self.flags.append(flags.value)
        if self.refusal:
            ctypes.set_errno(self.refusal)
            return -1
        status: int = self._linux.renameat2(-100, first, -100, second, flags)
        return status


@pytest.mark.parametrize("refusal", [0, errno.ENOTSUP, errno.EIO], ids=["swapped", "not supported", "failed"])
def test_macos_swaps_with_renamex_np(
    scene: UpdateScene, monkeypatch: pytest.MonkeyPatch, refusal: int
) -> None:
    library = MacLibrary(refusal)
    monkeypatch.setattr(installer, "_load_libc", lambda: library)
    scene.change_source()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "darwin")
        if refusal == errno.EIO:
            with pytest.raises(LibraryUnwritable):
                scene.update()
        else:
            scene.update()
    assert read_files(scene.library) == (BEFORE if refusal == errno.EIO else AFTER)
    assert library.flags == [2]


def test_a_server_sees_a_library_during_all_updates(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    source = write_files(tmp_path / "lib", {"a.md": "0", "b.md": "same"})
    home = str(machine.libraries.parent)
    add(home, str(source))
    with LibraryClient(machine) as client:
        assert client.names() == ["lib:a", "lib:b"]
        for number in range(1, 30):
            write_files(source, {"a.md": str(number)})
            update(home, "lib")
            assert client.text("lib:b") == "same"
            assert client.names() == ["lib:a", "lib:b"]
