"""Removing libraries: unedited copies are deleted, local files are backed up, other files are not touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from dittybag.domain.errors import LibraryEdited, LibraryNotFound
from dittybag.library.install_records import InstallRecord, folders_by_name, read_records
from dittybag.library.installer import add, create, remove, update
from tests.library.local_edits import has_local_edits
from tests.library.source_fixtures import leftovers, read_files, write_files

FILES = {"a.md": "one", "deep/b.md": "two"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def library(home: Path, tmp_path: Path) -> Path:
    return Path(add(str(home), str(write_files(tmp_path / "lib", FILES))).path)


def write_record(home: Path, name: str, **fields: object) -> None:
    """Write a record with arbitrary fields."""
    record = {"kind": "folder", "location": "/nowhere"}
    write_files(home, {f"libraries/.dittybag/{name}.json": msgspec.json.encode(record | fields).decode()})


def test_a_library_without_edits_is_deleted(home: Path, library: Path, tmp_path: Path) -> None:
    removed = remove(str(home), "LIB")
    assert (removed.name, removed.kept_in, removed.link) == ("lib", None, False)
    assert not library.exists()
    assert read_records(str(home)) == {}
    assert leftovers(home) == []
    assert read_files(tmp_path / "lib") == FILES
    assert not (home / "libraries" / ".dittybag" / "kept").exists()


@pytest.mark.parametrize("edit", ["changed", "added", "deleted", "repository", "link"])
def test_a_library_with_edits_is_only_removed_to_a_backup(home: Path, library: Path, edit: str) -> None:
    if edit == "deleted":
        (library / "a.md").unlink()
    elif edit == "link":
        (library / "link").symlink_to("/etc")
    else:
        file = {"changed": "a.md", "added": "new.md", "repository": ".git/HEAD"}[edit]
        write_files(library, {file: "my work"})
    before = read_files(library)
    with pytest.raises(LibraryEdited, match="was edited by hand"):
        remove(str(home), "lib")
    assert read_files(library) == before
    removed = remove(str(home), "lib", discard_edits=True)
    assert not library.exists()
    assert read_files(Path(str(removed.kept_in))) == before
    assert read_records(str(home)) == {}
    again = add(str(home), str(removed.kept_in), name="lib")
    assert again.path == str(library)


#: Saves a file after the library was compared with its record and before it is moved.
LATE_EDITOR = """
import sys
from pathlib import Path
from dittybag.library.installer import remove

home, library = sys.argv[1], Path(sys.argv[2])

def save(event, arguments):
    if event == "os.rename" and str(arguments[0]) == str(library):
        (library / "a.md").write_text("late")

sys.addaudithook(save)
print(remove(home, "lib").kept_in)
"""


def test_an_edit_just_before_the_removal_is_backed_up(home: Path, library: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LATE_EDITOR, str(home), str(library)],
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert not library.exists()
    assert read_files(Path(done.stdout.strip())) == FILES | {"a.md": "late"}


def test_files_created_by_file_managers_are_not_edits(home: Path, library: Path) -> None:
    write_files(library, {".DS_Store": "x", "deep/Thumbs.db": "x"})
    assert not has_local_edits(str(home), "lib")
    assert remove(str(home), "lib").kept_in is None


def test_a_library_added_by_hand_is_removed_to_a_backup(home: Path) -> None:
    write_files(home / "libraries" / "By-Hand", FILES)
    with pytest.raises(LibraryEdited, match="was added by hand and may be the only copy"):
        remove(str(home), "by-hand")
    removed = remove(str(home), "by-hand", discard_edits=True)
    assert read_files(Path(str(removed.kept_in))) == FILES
    assert folders_by_name(str(home)) == {}


def test_a_new_library_is_deleted_only_if_it_was_not_edited(home: Path) -> None:
    create(str(home), "one")
    assert remove(str(home), "one").kept_in is None
    write_files(Path(create(str(home), "two").path), {"prompts/mine.md": "mine"})
    with pytest.raises(LibraryEdited):
        remove(str(home), "two")


def test_removing_a_symbolic_link_keeps_its_target(home: Path, tmp_path: Path) -> None:
    target = write_files(tmp_path / "elsewhere", FILES)
    (home / "libraries").mkdir(parents=True)
    (home / "libraries" / "linked").symlink_to(target)
    assert remove(str(home), "linked").link
    assert not (home / "libraries" / "linked").is_symlink()
    assert read_files(target) == FILES


def test_no_library_name_leads_out_of_the_libraries_folder(home: Path, library: Path, tmp_path: Path) -> None:
    write_files(home, {"default.db": "data"})
    before = read_files(tmp_path)
    for name in ("", ".", "..", "../..", "../home", "/", ".dittybag/kept", "nothing", "\0", "*", "lib/deep"):
        with pytest.raises(LibraryNotFound):
            remove(str(home), name, discard_edits=True)
    assert read_files(tmp_path) == before


@pytest.mark.parametrize("kind", ["folder", "link", "git", "new"])
@pytest.mark.parametrize("location", ["/", "..", "../../precious", "", "-x", "ext::sh -c x"])
def test_a_manipulated_record_cannot_affect_other_files(
    home: Path, tmp_path: Path, kind: str, location: str
) -> None:
    precious = write_files(tmp_path / "precious", FILES)
    write_record(home, "lib", kind=kind, location=location or str(precious))
    write_files(home / "libraries" / "lib", {"x.md": "x"})
    try:
        remove(str(home), "lib", discard_edits=True)
    finally:
        assert read_files(precious) == FILES


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"kind":"folder"}',
        b'{"kind":"else","location":"/"}',
        b'{"kind":"link","location":"/etc"}',
        b"\xff\xfe",
        b"[" * 100_000,
        b" " * (17 * 1024 * 1024),
    ],
)
def test_a_library_with_an_unreadable_record_counts_as_added_by_hand(
    home: Path, library: Path, record: bytes
) -> None:
    (home / "libraries" / ".dittybag" / "lib.json").write_bytes(record)
    assert read_records(str(home)) == {}
    assert not has_local_edits(str(home), "lib")
    assert "added by hand" in str(update(str(home), "lib").note)
    with pytest.raises(LibraryEdited):
        remove(str(home), "lib")
    assert read_files(library) == FILES
    assert remove(str(home), "lib", discard_edits=True).kept_in is not None


def test_records_with_invalid_names_or_types_are_skipped(home: Path, library: Path) -> None:
    own = home / "libraries" / ".dittybag"
    (own / "folder.json").mkdir()
    (own / "link.json").symlink_to("/etc/passwd")
    (own / "loop.json").symlink_to("loop.json")
    write_files(own, {"..json": "{}", "Upper.json": "{}", "a.b.json": "{}", ".json": "{}", "note.txt": "x"})
    assert list(read_records(str(home))) == ["lib"]


def test_a_record_without_a_folder_is_ignored(home: Path, library: Path, tmp_path: Path) -> None:
    library.rename(tmp_path / "moved")
    assert read_records(str(home)) == {}
    (tmp_path / "moved").rename(library)
    assert list(read_records(str(home))) == ["lib"]
    library.rename(tmp_path / "moved")
    with pytest.raises(LibraryNotFound):
        remove(str(home), "lib")
    assert isinstance(add(str(home), str(tmp_path / "lib")).record, InstallRecord)
    assert not has_local_edits(str(home), "lib")


def test_no_folders_are_created_before_the_first_library(home: Path) -> None:
    assert read_records(str(home)) == {}
    assert folders_by_name(str(home)) == {}
    assert not has_local_edits(str(home), "lib")
    with pytest.raises(LibraryNotFound):
        remove(str(home), "lib")
    assert not home.exists()
