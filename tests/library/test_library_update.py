"""Library updates: changes of the source are installed, and local edits are kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dittybag.domain.errors import LibrariesBusy, LibraryNotFound, LibraryRefused, Outdated, SourceNotFound
from dittybag.library import atomic_install
from dittybag.library.install_records import read_records
from dittybag.library.installer import UpdateResult, add, create, update
from tests.library.local_edits import local_edits
from tests.library.source_fixtures import commit, leftovers, read_files, write_files, write_zip

BEFORE = {"same.md": "same", "changed.md": "1", "gone.md": "gone", "mine.md": "theirs", "both.md": "1"}
BEFORE |= {"dropped.md": "x", "dropped-and-changed.md": "1", "kept-but-gone.md": "1"}
AFTER = {"same.md": "same", "changed.md": "2", "mine.md": "theirs", "both.md": "2", "new/one.md": "new"}
AFTER |= {"dropped.md": "x", "dropped-and-changed.md": "2"}


class UpdateScene:
    """A library and its source, with edits on both sides."""

    def __init__(self, folder: Path) -> None:
        self.home = str(folder / "home")
        self.source = write_files(folder / "lib", BEFORE)
        self.library = Path(add(self.home, str(self.source)).path)

    def edit(self) -> None:
        write_files(
            self.library,
            {"mine.md": "mine", "both.md": "my 2", "extra.md": "extra", "kept-but-gone.md": "my"},
        )
        (self.library / "dropped.md").unlink()
        (self.library / "dropped-and-changed.md").unlink()
        (self.library / "link.md").symlink_to("same.md")

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
    assert updated.changed == ("both.md", "changed.md", "dropped-and-changed.md")
    assert updated.removed == ("gone.md", "kept-but-gone.md")
    assert (updated.kept, updated.conflicts, updated.kept_in) == ((), (), None)
    assert local_edits(scene.home, "lib") == []
    assert leftovers(Path(scene.home)) == []


def test_edits_are_kept_and_conflicts_are_reported_once(scene: UpdateScene) -> None:
    scene.edit()
    scene.change_source()
    untouched = (scene.library / "mine.md").stat()
    updated = scene.update()
    assert read_files(scene.library) == {
        "same.md": "same",
        "changed.md": "2",
        "mine.md": "mine",
        "both.md": "my 2",
        "extra.md": "extra",
        "kept-but-gone.md": "my",
        "new/one.md": "new",
    }
    assert (scene.library / "link.md").readlink() == Path("same.md")
    assert (scene.library / "mine.md").stat().st_mtime_ns == untouched.st_mtime_ns
    assert updated.added == ("new/one.md",)
    assert updated.changed == ("changed.md",)
    assert updated.removed == ("gone.md",)
    assert updated.conflicts == ("both.md", "dropped-and-changed.md", "kept-but-gone.md")
    assert set(updated.kept) == {*updated.conflicts, "dropped.md", "extra.md", "link.md", "mine.md"}
    again = scene.update()
    assert (again.added, again.changed, again.removed, again.conflicts) == ((), (), (), ())
    assert read_files(scene.library)["both.md"] == "my 2"
    write_files(scene.source, {"both.md": "3"})
    assert scene.update().conflicts == ("both.md",)


def test_overwrite_installs_the_sources_files_and_backs_up_edited_ones(scene: UpdateScene) -> None:
    scene.edit()
    scene.change_source()
    updated = scene.update(overwrite=True)
    assert read_files(scene.library) == AFTER | {"extra.md": "extra"}
    assert updated.conflicts == ()
    assert updated.put_aside == ("both.md", "kept-but-gone.md", "mine.md")
    assert updated.kept_in is not None
    assert Path(updated.kept_in).is_relative_to(Path(scene.home) / "libraries" / ".dittybag" / "kept" / "lib")
    assert read_files(Path(updated.kept_in)) == {
        "both.md": "my 2",
        "kept-but-gone.md": "my",
        "mine.md": "mine",
    }
    assert local_edits(scene.home, "lib") == ["extra.md", "link.md"]


def test_overwrite_works_after_a_reported_conflict(scene: UpdateScene) -> None:
    scene.edit()
    scene.change_source()
    scene.update()
    updated = scene.update(overwrite=True)
    assert updated.put_aside == ("both.md", "mine.md")
    # An edited file that the source no longer has is a local file from then on.
    assert read_files(scene.library) == AFTER | {"extra.md": "extra", "kept-but-gone.md": "my"}


def test_two_backups_in_one_second_do_not_overwrite_each_other(scene: UpdateScene) -> None:
    backups = set()
    for number in range(3):
        write_files(scene.library, {"same.md": f"mine {number}"})
        backups.add(scene.update(overwrite=True).kept_in)
    assert {Path(str(place), "same.md").read_text() for place in backups} == {"mine 0", "mine 1", "mine 2"}


def test_a_local_git_repository_in_a_library_is_kept(scene: UpdateScene) -> None:
    commit(scene.library)
    head = (scene.library / ".git" / "HEAD").read_text()
    scene.change_source()
    updated = scene.update()
    assert updated.kept == (".git",)
    assert (scene.library / ".git" / "HEAD").read_text() == head
    assert any((scene.library / ".git" / "objects").rglob("*"))
    assert local_edits(scene.home, "lib") == [".git"]


def test_a_file_and_a_folder_with_one_name_conflict(scene: UpdateScene) -> None:
    write_files(scene.library, {"topic": "my file", "folder/mine.md": "my folder"})
    write_files(scene.source, {"topic/a.md": "their folder", "folder": "their file", "fine.md": "fine"})
    updated = scene.update()
    assert updated.added == ("fine.md",)
    assert updated.conflicts == ("folder", "topic/a.md")
    assert read_files(scene.library)["topic"] == "my file"
    assert read_files(scene.library)["folder/mine.md"] == "my folder"


def test_undecodable_names_and_outside_links_are_kept_as_edits(scene: UpdateScene, tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(scene.library) + b"/caf\xe9.md")).write_text("mine")
    write_files(tmp_path / "outside", {"x.md": "x"})
    (scene.library / "out").symlink_to(tmp_path / "outside")
    (scene.library / "changed.md").unlink()
    (scene.library / "changed.md").symlink_to(tmp_path / "outside" / "x.md")
    os.mkfifo(scene.library / "pipe")
    scene.change_source()
    updated = scene.update(overwrite=True)
    assert read_files(tmp_path / "outside") == {"x.md": "x"}
    assert updated.kept == ("caf?.md", "out", "pipe")
    assert updated.put_aside == ("changed.md",)
    assert Path(str(updated.kept_in), "changed.md").is_symlink()
    assert (scene.library / "changed.md").read_text() == "2"


#: Saves files by rename, as editors do, after the library was scanned and before it is swapped.
LATE_EDITOR = """
import sys
from pathlib import Path
from dittybag.library.installer import update

home, place = sys.argv[1], Path(sys.argv[2])
saved = []

def save(event, arguments):
    if event == "os.link" and not saved:
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
    everything = read_files(scene.library) | read_files(Path(done.stdout.strip()))
    for name in ("changed.md", "late.md", "same.md"):
        assert everything[name] == f"late {name}"
    assert read_files(scene.library)["changed.md"] == "2"


def test_all_kinds_of_sources_are_updated(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    commit(tmp_path / "repository", BEFORE)
    add(home, f"file://{tmp_path / 'repository'}", name="git")
    add(home, str(write_zip(tmp_path / "pack.zip", BEFORE)), name="zip")
    for file in BEFORE:
        (tmp_path / "repository" / file).unlink()
    newest = commit(tmp_path / "repository", AFTER)
    write_zip(tmp_path / "pack.zip", AFTER)
    assert update(home, "git").revision == newest
    assert update(home, "zip").revision is None
    for name in ("git", "zip"):
        assert read_files(tmp_path / "home" / "libraries" / name) == AFTER
    assert read_records(home)["git"].revision == newest
    assert read_records(home)["git"].added_at < read_records(home)["git"].updated_at


def test_a_missing_or_empty_source_does_not_change_the_library(scene: UpdateScene) -> None:
    scene.source.rename(scene.source.parent / "elsewhere")
    with pytest.raises(SourceNotFound, match="the library's source no longer exists"):
        scene.update()
    scene.source.mkdir()
    with pytest.raises(LibraryRefused, match="it has no files"):
        scene.update()
    assert read_files(scene.library) == BEFORE
    assert local_edits(scene.home, "lib") == []
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
    assert local_edits(scene.home, "lib") == []


def test_waiting_too_long_for_the_lock_raises_libraries_busy(scene: UpdateScene) -> None:
    with (
        atomic_install.locked(scene.home),
        pytest.raises(LibrariesBusy),
        atomic_install.locked(scene.home, seconds=0.05),
    ):
        pass


def test_a_library_replaced_by_a_link_is_not_updated(scene: UpdateScene, tmp_path: Path) -> None:
    scene.library.rename(tmp_path / "moved")
    scene.library.symlink_to(tmp_path / "moved")
    scene.change_source()
    with pytest.raises(LibraryRefused, match="is now a symbolic link"):
        scene.update()
    assert read_files(tmp_path / "moved") == BEFORE
