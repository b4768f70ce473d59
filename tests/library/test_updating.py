"""Updates: the source's changes come in, and nobody's work is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dittybag.domain.errors import LibrariesBusy, LibraryNotFound, LibraryRefused, Outdated, SourceNotFound
from dittybag.library import atomic_install
from dittybag.library.install_records import find_edits, read_records
from dittybag.library.installer import UpdateResult, add, create, update
from tests.library.packing import archive, commit, leftovers, plant, tree

BEFORE = {"same.md": "same", "changed.md": "1", "gone.md": "gone", "mine.md": "theirs", "both.md": "1"}
BEFORE |= {"dropped.md": "x", "dropped-and-changed.md": "1", "kept-but-gone.md": "1"}
AFTER = {"same.md": "same", "changed.md": "2", "mine.md": "theirs", "both.md": "2", "new/one.md": "new"}
AFTER |= {"dropped.md": "x", "dropped-and-changed.md": "2"}


class Scene:
    """A library, its source, and edits on both sides."""

    def __init__(self, folder: Path) -> None:
        self.home = str(folder / "home")
        self.source = plant(folder / "lib", BEFORE)
        self.place = Path(add(self.home, str(self.source)).path)

    def edit(self) -> None:
        plant(
            self.place, {"mine.md": "mine", "both.md": "my 2", "extra.md": "extra", "kept-but-gone.md": "my"}
        )
        (self.place / "dropped.md").unlink()
        (self.place / "dropped-and-changed.md").unlink()
        (self.place / "link.md").symlink_to("same.md")

    def move_on(self) -> None:
        for file in BEFORE:
            (self.source / file).unlink(missing_ok=True)
        plant(self.source, AFTER)

    def update(self, *, overwrite: bool = False) -> UpdateResult:
        return update(self.home, "lib", overwrite=overwrite)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_without_edits_the_library_becomes_what_the_source_is(scene: Scene) -> None:
    scene.move_on()
    updated = scene.update()
    assert tree(scene.place) == AFTER
    assert updated.added == ("new/one.md",)
    assert updated.changed == ("both.md", "changed.md", "dropped-and-changed.md")
    assert updated.removed == ("gone.md", "kept-but-gone.md")
    assert (updated.kept, updated.conflicts, updated.kept_in) == ((), (), None)
    assert find_edits(scene.home, "lib") == []
    assert leftovers(Path(scene.home)) == []


def test_edits_are_kept_and_those_on_both_sides_reported_once(scene: Scene) -> None:
    scene.edit()
    scene.move_on()
    untouched = (scene.place / "mine.md").stat()
    updated = scene.update()
    assert tree(scene.place) == {
        "same.md": "same",
        "changed.md": "2",
        "mine.md": "mine",
        "both.md": "my 2",
        "extra.md": "extra",
        "kept-but-gone.md": "my",
        "new/one.md": "new",
    }
    assert (scene.place / "link.md").readlink() == Path("same.md")
    assert (scene.place / "mine.md").stat().st_mtime_ns == untouched.st_mtime_ns
    assert updated.added == ("new/one.md",)
    assert updated.changed == ("changed.md",)
    assert updated.removed == ("gone.md",)
    assert updated.conflicts == ("both.md", "dropped-and-changed.md", "kept-but-gone.md")
    assert set(updated.kept) == {*updated.conflicts, "dropped.md", "extra.md", "link.md", "mine.md"}
    again = scene.update()
    assert (again.added, again.changed, again.removed, again.conflicts) == ((), (), (), ())
    assert tree(scene.place)["both.md"] == "my 2"
    plant(scene.source, {"both.md": "3"})
    assert scene.update().conflicts == ("both.md",)


def test_overwriting_takes_the_sources_files_and_puts_the_edited_ones_aside(scene: Scene) -> None:
    scene.edit()
    scene.move_on()
    updated = scene.update(overwrite=True)
    assert tree(scene.place) == AFTER | {"extra.md": "extra"}
    assert updated.conflicts == ()
    assert updated.put_aside == ("both.md", "kept-but-gone.md", "mine.md")
    assert updated.kept_in is not None
    assert Path(updated.kept_in).is_relative_to(Path(scene.home) / "libraries" / ".dittybag" / "kept" / "lib")
    assert tree(Path(updated.kept_in)) == {"both.md": "my 2", "kept-but-gone.md": "my", "mine.md": "mine"}
    assert [edit.file for edit in find_edits(scene.home, "lib")] == ["extra.md", "link.md"]


def test_overwriting_after_a_conflict_was_reported_works_as_well(scene: Scene) -> None:
    scene.edit()
    scene.move_on()
    scene.update()
    updated = scene.update(overwrite=True)
    assert updated.put_aside == ("both.md", "mine.md")
    # What the source has no more, and was edited here, is nobody else's from then on.
    assert tree(scene.place) == AFTER | {"extra.md": "extra", "kept-but-gone.md": "my"}


def test_putting_aside_twice_in_a_second_overwrites_nothing(scene: Scene) -> None:
    places = set()
    for number in range(3):
        plant(scene.place, {"same.md": f"mine {number}"})
        places.add(scene.update(overwrite=True).kept_in)
    assert {Path(str(place), "same.md").read_text() for place in places} == {"mine 0", "mine 1", "mine 2"}


def test_what_has_been_made_into_a_repository_here_stays_one(scene: Scene) -> None:
    commit(scene.place)
    head = (scene.place / ".git" / "HEAD").read_text()
    scene.move_on()
    updated = scene.update()
    assert updated.kept == (".git",)
    assert (scene.place / ".git" / "HEAD").read_text() == head
    assert any((scene.place / ".git" / "objects").rglob("*"))
    assert [edit.file for edit in find_edits(scene.home, "lib")] == [".git"]


def test_files_and_folders_of_one_name_are_conflicts(scene: Scene) -> None:
    plant(scene.place, {"topic": "my file", "folder/mine.md": "my folder"})
    plant(scene.source, {"topic/a.md": "their folder", "folder": "their file", "fine.md": "fine"})
    updated = scene.update()
    assert updated.added == ("fine.md",)
    assert updated.conflicts == ("folder", "topic/a.md")
    assert tree(scene.place)["topic"] == "my file"
    assert tree(scene.place)["folder/mine.md"] == "my folder"


def test_names_that_are_no_text_and_links_that_lead_out_do_not_disturb(scene: Scene, tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(scene.place) + b"/caf\xe9.md")).write_text("mine")
    plant(tmp_path / "outside", {"x.md": "x"})
    (scene.place / "out").symlink_to(tmp_path / "outside")
    (scene.place / "changed.md").unlink()
    (scene.place / "changed.md").symlink_to(tmp_path / "outside" / "x.md")
    os.mkfifo(scene.place / "pipe")
    scene.move_on()
    updated = scene.update(overwrite=True)
    assert tree(tmp_path / "outside") == {"x.md": "x"}
    assert updated.kept == ("caf?.md", "out", "pipe")
    assert updated.put_aside == ("changed.md",)
    assert Path(str(updated.kept_in), "changed.md").is_symlink()
    assert (scene.place / "changed.md").read_text() == "2"


#: Somebody saves, renaming as editors do, after the library was looked at and before it is exchanged.
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


def test_an_edit_that_comes_while_the_update_is_built_is_not_lost(scene: Scene) -> None:
    scene.move_on()
    done = subprocess.run(
        [sys.executable, "-c", LATE_EDITOR, scene.home, str(scene.place)],
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    everything = tree(scene.place) | tree(Path(done.stdout.strip()))
    for name in ("changed.md", "late.md", "same.md"):
        assert everything[name] == f"late {name}"
    assert tree(scene.place)["changed.md"] == "2"


def test_all_kinds_of_sources_are_updated(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    commit(tmp_path / "repository", BEFORE)
    add(home, f"file://{tmp_path / 'repository'}", name="git")
    add(home, str(archive(tmp_path / "pack.zip", BEFORE)), name="zip")
    for file in BEFORE:
        (tmp_path / "repository" / file).unlink()
    newest = commit(tmp_path / "repository", AFTER)
    archive(tmp_path / "pack.zip", AFTER)
    assert update(home, "git").revision == newest
    assert update(home, "zip").revision is None
    for name in ("git", "zip"):
        assert tree(tmp_path / "home" / "libraries" / name) == AFTER
    assert read_records(home)["git"].revision == newest
    assert read_records(home)["git"].added_at < read_records(home)["git"].updated_at


def test_a_source_that_is_gone_or_empty_leaves_the_library_alone(scene: Scene) -> None:
    scene.source.rename(scene.source.parent / "elsewhere")
    with pytest.raises(SourceNotFound, match="the library's source no longer exists"):
        scene.update()
    scene.source.mkdir()
    with pytest.raises(LibraryRefused, match="it has no files"):
        scene.update()
    assert tree(scene.place) == BEFORE
    assert find_edits(scene.home, "lib") == []
    assert leftovers(Path(scene.home)) == []


def test_where_there_is_no_source_there_is_nothing_to_update(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    add(home, str(plant(tmp_path / "linked", BEFORE)), link=True)
    create(home, "made")
    plant(tmp_path / "home" / "libraries" / "By-Hand", BEFORE)
    assert "is always up to date" in str(update(home, "linked").note)
    assert "was created with dittybag library new" in str(update(home, "made").note)
    assert "was added by hand" in str(update(home, "by_hand").note)
    for name in ("nothing", "", "..", "../home", "---"):
        with pytest.raises(LibraryNotFound):
            update(home, name)


def test_two_updates_at_once_do_not_undo_each_other(scene: Scene) -> None:
    scene.move_on()
    other: list[UpdateResult] = []

    def meanwhile(line: str) -> None:
        if not other:
            other.append(scene.update())

    # Progress is told while the source is being read: the record is older than that.
    plant(scene.source, {f"{number}.md": "x" for number in range(50)})
    with pytest.raises(Outdated, match="was changed by someone else"):
        update(scene.home, "lib", progress=meanwhile)
    assert other[0].added
    assert find_edits(scene.home, "lib") == []


def test_whoever_waits_too_long_for_the_others_is_told(scene: Scene) -> None:
    with (
        atomic_install.locked(scene.home),
        pytest.raises(LibrariesBusy),
        atomic_install.locked(scene.home, seconds=0.05),
    ):
        pass


def test_a_library_that_has_become_a_link_is_not_updated(scene: Scene, tmp_path: Path) -> None:
    scene.place.rename(tmp_path / "moved")
    scene.place.symlink_to(tmp_path / "moved")
    scene.move_on()
    with pytest.raises(LibraryRefused, match="is now a symbolic link"):
        scene.update()
    assert tree(tmp_path / "moved") == BEFORE
