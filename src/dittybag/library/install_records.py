"""Install records: where each library was installed from, and which of its files were edited since.

Running servers read the records without a lock. A damaged record is reported, not raised. On disk:

HOME/libraries/NAME/                       a library; a folder without a record was added by hand
HOME/libraries/.dittybag/NAME.json          the library's record; a linked library has only a record
HOME/libraries/.dittybag/NAME.next.json     the pending record of a folder that is about to be installed
HOME/libraries/.dittybag/kept/NAME/TIME/    files that an update or a removal backed up
HOME/libraries/.dittybag/work-*/            staging folders of changes in progress
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from dittybag import files
from dittybag.domain.libraries import FileProblem, library_name
from dittybag.library.relative_paths import is_junk_file, path_problem, replace_surrogates

#: Dittybag never writes a larger record.
MAX_RECORD_BYTES: Final = 16 * 1024 * 1024

#: Larger files are never installed, so a larger file was added later.
MAX_FILE_BYTES: Final = 4 * 1024 * 1024

_RECORD_SUFFIX: Final = ".json"
_PENDING_SUFFIX: Final = ".next.json"
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")

InstallKind: TypeAlias = Literal["folder", "git", "zip", "new", "link"]


class InstallRecord(Struct, frozen=True, kw_only=True):
    """Where a library was installed from, and its files at that time."""

    kind: InstallKind
    #: An absolute path, or a URL without credentials. For a link, the folder to read.
    location: str
    #: The subfolder of the source that was installed; empty for the whole source.
    folder: str = ""
    #: The Git commit.
    revision: str | None = None
    added_at: int
    updated_at: int
    #: Path and SHA-256 of each installed file, as of the last update.
    files: dict[str, str] = {}


class PendingRecord(InstallRecord, frozen=True, kw_only=True):
    """The record of a folder that is about to be installed."""

    #: The inode of the staged folder. The record is valid once the library's folder has this inode.
    inode: int


class LocalEdit(Struct, frozen=True):
    """A file that differs from the installed version."""

    file: str
    change: Literal["added", "changed", "missing"]


class InstallRecords(Struct, frozen=True):
    """All readable records by library name, and the problems of the others."""

    records: dict[str, InstallRecord]
    problems: tuple[FileProblem, ...] = ()


class _InvalidRecord(Exception):
    """A record cannot be read or decoded."""


class _LinkFields(Struct, frozen=True):
    """The fields of a record that are needed to find linked folders."""

    kind: InstallKind
    location: str


R = TypeVar("R", bound=Struct)
AnyRecord = TypeVar("AnyRecord", bound=InstallRecord)


def libraries_folder(home: str) -> str:
    return f"{home}/libraries"


def records_folder(home: str) -> str:
    return f"{home}/libraries/.dittybag"


def library_folder(home: str, name: str) -> str:
    return f"{home}/libraries/{name}"


def record_file(home: str, name: str) -> str:
    return f"{records_folder(home)}/{name}{_RECORD_SUFFIX}"


def pending_record_file(home: str, name: str) -> str:
    return f"{records_folder(home)}/{name}{_PENDING_SUFFIX}"


def folders_by_name(home: str) -> dict[str, str]:
    """Library folders by library name. If two folders have the same name, the first in path order wins."""
    found: dict[str, str] = {}
    for folder in sorted(_list_names(libraries_folder(home))):
        name = library_name(folder)
        path = library_folder(home, folder)
        if name and name not in found and not folder.startswith(".") and os.path.isdir(path):
            found[name] = path
    return found


def read_records(home: str) -> dict[str, InstallRecord]:
    """All readable records by library name. Libraries added by hand have no record."""
    return scan_records(home).records


def scan_records(home: str) -> InstallRecords:
    """Read all records of existing libraries, and collect the problems of unreadable ones."""
    records: dict[str, InstallRecord] = {}
    problems = []
    for name in recorded_names(home):
        try:
            record = _read_current(home, name)
        except _InvalidRecord as error:
            problems.append(FileProblem(f".dittybag/{name}{_RECORD_SUFFIX}", str(error)))
            continue
        if record is not None:
            records[name] = record
    return InstallRecords(records, tuple(problems))


def linked_folders(home: str, taken: Collection[str] = ()) -> dict[str, str]:
    """The folders of linked libraries by name, except for the names in `taken`."""
    found = {}
    for name in recorded_names(home):
        if name in taken:
            continue
        try:
            record = _decode(record_file(home, name), _LinkFields)
        except _InvalidRecord:
            continue
        if record is not None and record.kind == "link" and record.location.startswith("/"):
            found[name] = record.location
    return found


def recorded_names(home: str) -> list[str]:
    """The names of libraries that have a record, sorted."""
    names = {
        file.removesuffix(_PENDING_SUFFIX).removesuffix(_RECORD_SUFFIX)
        for file in _list_names(records_folder(home))
        if file.endswith(_RECORD_SUFFIX)
    }
    return sorted(name for name in names if name and library_name(name) == name)


def read_record(home: str, name: str) -> InstallRecord | None:
    """The record of a library; None if it has none or it cannot be read."""
    try:
        return _read_current(home, name)
    except _InvalidRecord:
        return None


def pending_names(home: str) -> set[str]:
    """The names of libraries with a pending record."""
    return {
        file.removesuffix(_PENDING_SUFFIX)
        for file in _list_names(records_folder(home))
        if file.endswith(_PENDING_SUFFIX)
    }


def read_pending_record(home: str, name: str) -> PendingRecord | None:
    """The pending record of a library, if its folder was already installed; else None."""
    try:
        record = _decode_record(pending_record_file(home, name), PendingRecord)
        inode = os.stat(library_folder(home, name), follow_symlinks=False).st_ino
    except (_InvalidRecord, FileNotFoundError):
        return None
    return record if record is not None and record.inode == inode else None


def find_edits(home: str, name: str) -> list[LocalEdit]:
    """The local edits in an installed library; empty if it is linked or has no record."""
    record = read_record(home, name)
    if record is None or record.kind == "link":
        return []
    return compare_with_record(library_folder(home, name), record)


def compare_with_record(folder: str, record: InstallRecord) -> list[LocalEdit]:
    """The differences between a folder and the files in its record."""
    try:
        present = file_digests(folder)
    except FileNotFoundError:
        return []
    except files.TooManyFiles:
        # No installed library has this many files.
        return [LocalEdit("", "added")]
    installed = record.files
    found = [
        LocalEdit(replace_surrogates(file), "changed" if file in installed else "added")
        for file, digest in present.items()
        if installed.get(file) != digest
    ]
    found += [LocalEdit(file, "missing") for file in installed if file not in present]
    return sorted(found, key=lambda edit: edit.file)


def file_digests(folder: str) -> dict[str, str]:
    """The SHA-256 of every file; an empty string for entries that cannot have been installed."""
    from dittybag.library.file_walk import walk

    found = {}
    for item in walk(folder):
        if is_junk_file(item.name):
            continue
        try:
            small = item.kind == "file" and item.status.st_size <= MAX_FILE_BYTES
            found[item.path] = item.sha256() if small else ""
        except FileNotFoundError:
            continue
        except OSError:
            # Unreadable, so it cannot be compared with the installed version.
            found[item.path] = ""
    return found


def _read_current(home: str, name: str) -> InstallRecord | None:
    if (pending := read_pending_record(home, name)) is not None:
        return pending
    record = _decode_record(record_file(home, name), InstallRecord)
    if record is not None and record.kind != "link" and not os.path.isdir(library_folder(home, name)):
        return None
    return record


def _decode_record(path: str, kind: type[AnyRecord]) -> AnyRecord | None:
    record = _decode(path, kind)
    for file, digest in record.files.items() if record is not None else ():
        if problem := path_problem(file):
            raise _InvalidRecord(f"The record contains an invalid path: {problem}")
        if not _DIGEST.fullmatch(digest):
            raise _InvalidRecord("The record contains an invalid checksum")
    return record


def _decode(path: str, kind: type[R]) -> R | None:
    data = _read_bytes(path)
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise _InvalidRecord(f"The record cannot be read: {error}") from None


def _read_bytes(path: str) -> bytes | None:
    try:
        return files.read(path, MAX_RECORD_BYTES)
    except FileNotFoundError:
        return None
    except (files.NotRegularFile, files.FileTooLarge) as error:
        raise _InvalidRecord(f"The record is {error.strerror}") from None
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise _InvalidRecord(f"The record cannot be read: {reason}") from None


def _list_names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
