"""Removals: what can be had again is erased, what cannot is moved aside, and nothing outside is touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from dittybag.domain.errors import LibraryEdited, LibraryNotFound
from dittybag.library.install_records import (
    InstallRecord,
    find_edits,
    folders_by_name,
    read_records,
    scan_records,
)
from dittybag.library.installer import add, create, remove, update
from tests.library.packing import leftovers, plant, tree

FILES = {"a.md": "one", "deep/b.md": "two"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def place(home: Path, tmp_path: Path) -> Path:
    return Path(add(str(home), str(plant(tmp_path / "lib", FILES))).path)


def written(home: Path, name: str, **fields: object) -> None:
    """A record as somebody might write it by hand."""
    origin = {"kind": "folder", "location": "/nowhere", "added_at": 1, "updated_at": 1, "files": {}}
    plant(home, {f"libraries/.dittybag/{name}.json": msgspec.json.encode(origin | fields).decode()})


def test_a_library_that_can_be_had_again_is_erased(home: Path, place: Path, tmp_path: Path) -> None:
    removed = remove(str(home), "LIB")
    assert (removed.name, removed.kept_in, removed.link) == ("lib", None, False)
    assert not place.exists()
    assert read_records(str(home)) == {}
    assert leftovers(home) == []
    assert tree(tmp_path / "lib") == FILES
    assert not (home / "libraries" / ".dittybag" / "kept").exists()


@pytest.mark.parametrize("edit", ["changed", "added", "deleted", "repository", "link"])
def test_a_library_with_edits_is_refused_and_then_moved_aside(home: Path, place: Path, edit: str) -> None:
    if edit == "deleted":
        (place / "a.md").unlink()
    elif edit == "link":
        (place / "link").symlink_to("/etc")
    else:
        file = {"changed": "a.md", "added": "new.md", "repository": ".git/HEAD"}[edit]
        plant(place, {file: "my work"})
    before = tree(place)
    with pytest.raises(LibraryEdited, match="has local edits") as refused:
        remove(str(home), "lib")
    assert len(refused.value.files) == 1
    assert tree(place) == before
    removed = remove(str(home), "lib", discard_edits=True)
    assert not place.exists()
    assert tree(Path(str(removed.kept_in))) == before
    assert read_records(str(home)) == {}
    again = add(str(home), str(removed.kept_in), name="lib")
    assert again.path == str(place)


#: Somebody saves between the look at a library and its removal.
LATE_EDITOR = """
import sys
from pathlib import Path
from dittybag.library.installer import remove

home, place = sys.argv[1], Path(sys.argv[2])

def save(event, arguments):
    if event == "os.rename" and str(arguments[0]) == str(place):
        (place / "a.md").write_text("late")

sys.addaudithook(save)
print(remove(home, "lib").kept_in)
"""


def test_an_edit_that_comes_at_the_last_moment_is_not_erased(home: Path, place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LATE_EDITOR, str(home), str(place)],
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert not place.exists()
    assert tree(Path(done.stdout.strip())) == FILES | {"a.md": "late"}


def test_what_file_managers_leave_behind_is_no_edit(home: Path, place: Path) -> None:
    plant(place, {".DS_Store": "x", "deep/Thumbs.db": "x"})
    assert find_edits(str(home), "lib") == []
    assert remove(str(home), "lib").kept_in is None


def test_a_library_that_was_put_there_by_hand_is_moved_aside(home: Path) -> None:
    plant(home / "libraries" / "By-Hand", FILES)
    with pytest.raises(LibraryEdited, match="was added by hand and may be the only copy"):
        remove(str(home), "by-hand")
    removed = remove(str(home), "by-hand", discard_edits=True)
    assert tree(Path(str(removed.kept_in))) == FILES
    assert folders_by_name(str(home)) == {}


def test_a_new_library_is_erased_only_as_long_as_it_is_new(home: Path) -> None:
    create(str(home), "one")
    assert remove(str(home), "one").kept_in is None
    plant(Path(create(str(home), "two").path), {"prompts/mine.md": "mine"})
    with pytest.raises(LibraryEdited):
        remove(str(home), "two")


def test_a_link_that_was_put_there_by_hand_goes_and_what_it_leads_to_stays(
    home: Path, tmp_path: Path
) -> None:
    target = plant(tmp_path / "elsewhere", FILES)
    (home / "libraries").mkdir(parents=True)
    (home / "libraries" / "linked").symlink_to(target)
    with pytest.raises(LibraryEdited):
        remove(str(home), "linked")
    assert remove(str(home), "linked", discard_edits=True).link
    assert not (home / "libraries" / "linked").is_symlink()
    assert tree(target) == FILES


def test_no_name_leads_elsewhere(home: Path, place: Path, tmp_path: Path) -> None:
    plant(home, {"default.db": "data"})
    before = tree(tmp_path)
    for name in ("", ".", "..", "../..", "../home", "/", ".dittybag/kept", "nothing", "\0", "*", "lib/deep"):
        with pytest.raises(LibraryNotFound):
            remove(str(home), name, discard_edits=True)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("kind", ["folder", "link", "git", "zip", "new"])
@pytest.mark.parametrize("location", ["/", "..", "../../precious", "", "-x", "ext::sh -c x"])
def test_a_record_that_was_written_by_hand_endangers_nothing(
    home: Path, tmp_path: Path, kind: str, location: str
) -> None:
    precious = plant(tmp_path / "precious", FILES)
    written(home, "lib", kind=kind, location=location or str(precious))
    if kind != "link":
        plant(home / "libraries" / "lib", {"x.md": "x"})
    try:
        remove(str(home), "lib", discard_edits=True)
    finally:
        assert tree(precious) == FILES


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"kind":"folder"}',
        b'{"kind":"else","location":"/","added_at":1,"updated_at":1}',
        b'{"kind":"folder","location":"/","added_at":1,"updated_at":1,"files":{"../../../x":"%s"}}'
        % (b"0" * 64),
        b'{"kind":"folder","location":"/","added_at":1,"updated_at":1,"files":{"/etc/passwd":"%s"}}'
        % (b"0" * 64),
        b'{"kind":"folder","location":"/","added_at":1,"updated_at":1,"files":{"x":"y"}}',
        b"\xff\xfe",
        b"[" * 100_000,
        b" " * (17 * 1024 * 1024),
    ],
)
def test_a_record_that_says_nothing_is_reported_and_its_library_counts_as_put_there_by_hand(
    home: Path, place: Path, record: bytes
) -> None:
    (home / "libraries" / ".dittybag" / "lib.json").write_bytes(record)
    found = scan_records(str(home))
    assert found.records == {}
    assert [problem.file for problem in found.problems] == [".dittybag/lib.json"]
    assert find_edits(str(home), "lib") == []
    assert "added by hand" in str(update(str(home), "lib").note)
    with pytest.raises(LibraryEdited):
        remove(str(home), "lib")
    assert tree(place) == FILES
    assert remove(str(home), "lib", discard_edits=True).kept_in is not None


def test_records_that_are_no_files_or_have_impossible_names_are_skipped(home: Path, place: Path) -> None:
    own = home / "libraries" / ".dittybag"
    (own / "folder.json").mkdir()
    (own / "link.json").symlink_to("/etc/passwd")
    (own / "loop.json").symlink_to("loop.json")
    plant(own, {"..json": "{}", "Upper.json": "{}", "a.b.json": "{}", ".json": "{}", "note.txt": "x"})
    assert list(read_records(str(home))) == ["lib"]
    assert {problem.file for problem in scan_records(str(home)).problems} == {
        ".dittybag/folder.json", ".dittybag/link.json", ".dittybag/loop.json",
    }  # fmt: skip


def test_a_record_without_its_folder_stands_for_nothing(home: Path, place: Path, tmp_path: Path) -> None:
    place.rename(tmp_path / "moved")
    assert read_records(str(home)) == {}
    (tmp_path / "moved").rename(place)
    assert list(read_records(str(home))) == ["lib"]
    place.rename(tmp_path / "moved")
    with pytest.raises(LibraryNotFound):
        remove(str(home), "lib")
    assert isinstance(add(str(home), str(tmp_path / "lib")).record, InstallRecord)


def test_nothing_is_there_before_the_first_library(home: Path) -> None:
    assert read_records(str(home)) == {}
    assert folders_by_name(str(home)) == {}
    assert find_edits(str(home), "lib") == []
    with pytest.raises(LibraryNotFound):
        remove(str(home), "lib")
    assert not home.exists()
