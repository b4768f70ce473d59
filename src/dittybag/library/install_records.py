"""Install records: where each library was installed from, and which of its files were edited since.

Running servers read the records without a lock. A library with a damaged record counts as added by hand.

On disk:

HOME/libraries/NAME/                       a library; a folder without a record was added by hand
HOME/libraries/.dittybag/NAME.json          the library's record; a linked library has only a record
HOME/libraries/.dittybag/NAME.next.json     the pending record of a folder that is about to be installed
HOME/libraries/.dittybag/kept/NAME/TIME/    files that an update or a removal backed up
HOME/libraries/.dittybag/work-*/            staging folders of changes in progress
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from dittybag import files
from dittybag.domain.libraries import library_name
from dittybag.library.file_walk import walk
from dittybag.library.relative_paths import is_junk_file, path_problem, replace_surrogates

#: Dittybag never writes a larger record.
MAX_RECORD_BYTES: Final = 16 * 1024 * 1024

#: Larger files are never installed, so a larger file was added later.
MAX_FILE_BYTES: Final = 4 * 1024 * 1024

_RECORD_SUFFIX: Final = ".json"
_PENDING_SUFFIX: Final = ".next.json"
_DIGEST: Final = r"[0-9a-f]{64}"

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
    records = {name: read_record(home, name) for name in recorded_names(home)}
    return {name: record for name, record in records.items() if record is not None}


def linked_folders(home: str, taken: Collection[str] = ()) -> dict[str, str]:
    """The folders of linked libraries by name, except for the names in `taken`."""
    found = {}
    for name in recorded_names(home):
        if name in taken:
            continue
        record = _decode(record_file(home, name), _LinkFields)
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
    if (pending := read_pending_record(home, name)) is not None:
        return pending
    record = _decode_record(record_file(home, name), InstallRecord)
    if record is not None and record.kind != "link" and not os.path.isdir(library_folder(home, name)):
        return None
    return record


def pending_names(home: str) -> set[str]:
    """The names of libraries with a pending record."""
    return {
        file.removesuffix(_PENDING_SUFFIX)
        for file in _list_names(records_folder(home))
        if file.endswith(_PENDING_SUFFIX)
    }


def read_pending_record(home: str, name: str) -> PendingRecord | None:
    """The pending record of a library, if its folder was already installed; else None."""
    record = _decode_record(pending_record_file(home, name), PendingRecord)
    try:
        inode = os.stat(library_folder(home, name), follow_symlinks=False).st_ino
    except FileNotFoundError:
        return None
    return record if record is not None and record.inode == inode else None


def edited_files(folder: str, record: InstallRecord) -> list[str]:
    """The files that were added, changed or deleted since a library was installed."""
    try:
        present = file_digests(folder)
    except FileNotFoundError:
        return []
    except files.TooManyFiles:
        # No installed library has this many files.
        return [""]
    names = (file for file in {**present, **record.files} if present.get(file) != record.files.get(file))
    return sorted(map(replace_surrogates, names))


def file_digests(folder: str) -> dict[str, str]:
    """The SHA-256 of every file; an empty string for entries that cannot have been installed."""
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


def _decode_record(path: str, kind: type[AnyRecord]) -> AnyRecord | None:
    record = _decode(path, kind)
    if record is None or any(
        path_problem(file) or not re.fullmatch(_DIGEST, digest) for file, digest in record.files.items()
    ):
        return None
    return record


def _decode(path: str, kind: type[R]) -> R | None:
    """The content of a record; None if it is missing or damaged."""
    try:
        return msgspec.json.decode(files.read(path, MAX_RECORD_BYTES), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


def _list_names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
