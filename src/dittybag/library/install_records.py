"""Install records: where each library was installed from, and a digest of what was installed.

On disk:

HOME/libraries/NAME/                       a library; a symbolic link is a linked one
HOME/libraries/.dittybag/NAME.json          its record; a library without a record was added by hand
HOME/libraries/.dittybag/kept/NAME/TIME/    an edited library that an update or a removal moved away
HOME/libraries/.dittybag/work-*/            changes in progress
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from dittybag import files
from dittybag.domain.libraries import library_name
from dittybag.library.relative_paths import is_junk_file, walk

STAGING_PREFIX: Final = "work-"
RECORD_SUFFIX: Final = ".json"
#: Larger files are never installed, so a larger file was added later.
MAX_FILE_BYTES: Final = 4 * 1024 * 1024

_MAX_RECORD_BYTES: Final = 64 * 1024

InstallKind: TypeAlias = Literal["folder", "git", "new", "link"]


class InstallRecord(Struct, frozen=True, kw_only=True):
    """Where a library was installed from."""

    kind: InstallKind
    #: An absolute path, or a URL without credentials. For a link, the folder to read.
    location: str
    #: The subfolder of the source that was installed; empty for the whole source.
    folder: str = ""
    #: The Git commit.
    revision: str | None = None
    #: See `digest_of`. Empty for a link.
    digest: str = ""


def libraries_folder(home: str) -> str:
    return f"{home}/libraries"


def records_folder(home: str) -> str:
    return f"{home}/libraries/.dittybag"


def library_folder(home: str, name: str) -> str:
    return f"{home}/libraries/{name}"


def record_file(home: str, name: str) -> str:
    return f"{records_folder(home)}/{name}{RECORD_SUFFIX}"


def folders_by_name(home: str) -> dict[str, str]:
    """Library folders by library name. If two folders have the same name, the first in path order wins."""
    found: dict[str, str] = {}
    for folder in sorted(_list_names(libraries_folder(home))):
        name = library_name(folder)
        path = library_folder(home, folder)
        is_library = os.path.isdir(path) or os.path.islink(path)
        if name and name not in found and not folder.startswith(".") and is_library:
            found[name] = path
    return found


def read_records(home: str) -> dict[str, InstallRecord]:
    """The readable records by library name. Libraries added by hand have no record."""
    records = {name: _record_of(home, name, path) for name, path in folders_by_name(home).items()}
    return {name: record for name, record in records.items() if record is not None}


def read_record(home: str, name: str) -> InstallRecord | None:
    """The record of a library; None if it has none or it cannot be read."""
    path = folders_by_name(home).get(name)
    return None if path is None else _record_of(home, name, path)


def _record_of(home: str, name: str, path: str) -> InstallRecord | None:
    if os.path.islink(path):
        return InstallRecord(kind="link", location=os.path.realpath(path))
    return decode_record(record_file(home, name))


def decode_record(path: files.AnyPath) -> InstallRecord | None:
    """The content of a record; None if it is missing or damaged. A link has no record."""
    try:
        record = msgspec.json.decode(files.read(path, _MAX_RECORD_BYTES), type=InstallRecord)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return None if record.kind == "link" else record


def has_unfinished_changes(home: str) -> bool:
    """Whether a change to the libraries is in progress, or was interrupted."""
    return any(name.startswith(STAGING_PREFIX) for name in _list_names(records_folder(home)))


def is_edited(folder: str, record: InstallRecord) -> bool:
    """Whether files were added, changed or deleted since a library was installed."""
    try:
        return digest_of(file_digests(folder)) != record.digest
    except FileNotFoundError:
        return False
    except files.TooManyFiles:
        # No installed library has this many files.
        return True


def digest_of(digests: Mapping[str, str]) -> str:
    """One SHA-256 for the paths and the SHA-256 of all files."""
    # Imported here because it is slow to import.
    from hashlib import sha256

    return sha256(msgspec.json.encode(sorted(digests.items()))).hexdigest()


def file_digests(folder: str) -> dict[str, str]:
    """The SHA-256 of every file; an empty string for entries that cannot have been installed."""
    # Imported here because it is slow to import.
    from hashlib import sha256

    found = {}
    for item in walk(folder):
        if is_junk_file(item.name):
            continue
        path = os.fsencode(item.path).decode("utf-8", "backslashreplace")
        try:
            found[path] = sha256(item.read(MAX_FILE_BYTES)).hexdigest() if item.kind == "file" else ""
        except FileNotFoundError:
            continue
        except OSError:
            # Too large, or unreadable, so that it cannot be compared with the installed version.
            found[path] = ""
    return found


def _list_names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
