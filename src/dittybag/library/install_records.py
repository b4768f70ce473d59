"""Origins: where the libraries of this machine are from, and what was edited here since.

Running servers read this, so it asks for no lock, and a record that is broken or just going away is reported
rather than raised. On disk:

HOME/libraries/NAME/                       a library; a folder without a record was put there by hand
HOME/libraries/.dittybag/NAME.json          its record; that of a link stands for a library alone
HOME/libraries/.dittybag/NAME.next.json     the record of a folder that is about to be put into its place
HOME/libraries/.dittybag/kept/NAME/TIME/    what an update or a removal put aside
HOME/libraries/.dittybag/work-*/            where a change is being prepared
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Collection
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from dittybag.domain.libraries import FileProblem, library_name
from dittybag.library.relative_paths import encodable, is_dropping, path_problem

#: No record that was written here is larger.
RECORD_BYTES: Final = 16 * 1024 * 1024

#: Larger files are never installed, so that one is an addition.
FILE_BYTES: Final = 4 * 1024 * 1024

_RECORD: Final = ".json"
_NEXT: Final = ".next.json"
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")

OriginKind: TypeAlias = Literal["folder", "git", "zip", "new", "link"]


class Origin(Struct, frozen=True, kw_only=True):
    """Where a library is from."""

    kind: OriginKind
    #: An absolute path, or a URL as it was given, without credentials. Of a link: the folder to read.
    location: str
    #: The part of the source that was taken; nothing for all of it.
    folder: str = ""
    #: The commit.
    revision: str | None = None
    added_at: int
    updated_at: int
    #: The files of the source, with their SHA-256, as of the last update.
    files: dict[str, str] = {}


class NextOrigin(Origin, frozen=True, kw_only=True):
    """The record of a folder that is about to be put into its place."""

    #: Which folder: as long as another has its name, the former record is the true one.
    inode: int


class Edit(Struct, frozen=True):
    """A file that differs from what was installed."""

    file: str
    change: Literal["added", "changed", "missing"]


class Records(Struct, frozen=True):
    """What is known about the libraries of a machine, and which records cannot be read."""

    origins: dict[str, Origin]
    problems: tuple[FileProblem, ...] = ()


class _Broken(Exception):
    """A record that says nothing."""


class _LinkRecord(Struct, frozen=True):
    """As much of a record as it takes to find what is linked."""

    kind: OriginKind
    location: str


R = TypeVar("R", bound=Struct)
AnyOrigin = TypeVar("AnyOrigin", bound=Origin)


def libraries_folder(home: str) -> str:
    return f"{home}/libraries"


def records_folder(home: str) -> str:
    return f"{home}/libraries/.dittybag"


def library_folder(home: str, name: str) -> str:
    return f"{home}/libraries/{name}"


def record_file(home: str, name: str) -> str:
    return f"{records_folder(home)}/{name}{_RECORD}"


def next_record_file(home: str, name: str) -> str:
    return f"{records_folder(home)}/{name}{_NEXT}"


def folders(home: str) -> dict[str, str]:
    """The folders of libraries: by the library's name, of two with one name the first in path order."""
    found: dict[str, str] = {}
    for folder in sorted(_listed(libraries_folder(home))):
        name = library_name(folder)
        path = library_folder(home, folder)
        if name and name not in found and not folder.startswith(".") and _is_folder(path):
            found[name] = path
    return found


def records(home: str) -> dict[str, Origin]:
    """Where the libraries are from, by name. Those that were put there by hand are not in here."""
    return all_records(home).origins


def all_records(home: str) -> Records:
    """All records of libraries that are there, and what is wrong with the others."""
    origins: dict[str, Origin] = {}
    problems = []
    for name in _recorded(home):
        try:
            origin = _current(home, name)
        except _Broken as error:
            problems.append(FileProblem(f".dittybag/{name}{_RECORD}", str(error)))
            continue
        if origin is not None:
            origins[name] = origin
    return Records(origins, tuple(problems))


def links(home: str, taken: Collection[str] = ()) -> dict[str, str]:
    """The folders of linked libraries, by name. Records of names that are taken need not be read."""
    found = {}
    for name in _recorded(home):
        if name in taken:
            continue
        try:
            record = _decoded(record_file(home, name), _LinkRecord)
        except _Broken:
            continue
        if record is not None and record.kind == "link" and record.location.startswith("/"):
            found[name] = record.location
    return found


def _recorded(home: str) -> list[str]:
    """The libraries with a record, in the order of their names."""
    files = _listed(records_folder(home))
    names = {file.removesuffix(_NEXT).removesuffix(_RECORD) for file in files if file.endswith(_RECORD)}
    return sorted(name for name in names if name and library_name(name) == name)


def record(home: str, name: str) -> Origin | None:
    """Where a library is from; nothing if nobody knows."""
    try:
        return _current(home, name)
    except _Broken:
        return None


def pending(home: str) -> set[str]:
    """The libraries with a record that is not in its place yet."""
    return {file.removesuffix(_NEXT) for file in _listed(records_folder(home)) if file.endswith(_NEXT)}


def next_record(home: str, name: str) -> NextOrigin | None:
    """The record that was about to be put into its place, if its folder has been put into its own."""
    try:
        origin = _decoded_origin(next_record_file(home, name), NextOrigin)
        inode = os.stat(library_folder(home, name), follow_symlinks=False).st_ino
    except (_Broken, FileNotFoundError):
        return None
    return origin if origin is not None and origin.inode == inode else None


def edits(home: str, name: str) -> list[Edit]:
    """What was edited in a library since it was installed; nothing if it was not installed."""
    origin = record(home, name)
    if origin is None or origin.kind == "link":
        return []
    return edits_of(library_folder(home, name), origin)


def edits_of(folder: str, origin: Origin) -> list[Edit]:
    """In what a folder differs from what was installed."""
    from dittybag.library.file_walk import TooManyFiles

    try:
        present = digests(folder)
    except FileNotFoundError:
        return []
    except TooManyFiles:
        # More than anything that is installed has.
        return [Edit("", "added")]
    installed = origin.files
    found = [
        Edit(encodable(file), "changed" if file in installed else "added")
        for file, digest in present.items()
        if installed.get(file) != digest
    ]
    found += [Edit(file, "missing") for file in installed if file not in present]
    return sorted(found, key=lambda edit: edit.file)


def digests(folder: str) -> dict[str, str]:
    """The SHA-256 of every file; of what is no file that can have been installed, an empty text."""
    from dittybag.library.file_walk import digest, walk

    found = {}
    for item in walk(folder):
        if is_dropping(item.name):
            continue
        try:
            small = item.kind == "file" and item.status.st_size <= FILE_BYTES
            found[item.path] = digest(item) if small else ""
        except FileNotFoundError:
            continue
        except OSError:
            # Nobody can read it, so nobody can say that it is what was installed.
            found[item.path] = ""
    return found


def _current(home: str, name: str) -> Origin | None:
    if (coming := next_record(home, name)) is not None:
        return coming
    origin = _decoded_origin(record_file(home, name), Origin)
    if origin is not None and origin.kind != "link" and not _is_folder(library_folder(home, name)):
        return None
    return origin


def _decoded_origin(path: str, kind: type[AnyOrigin]) -> AnyOrigin | None:
    origin = _decoded(path, kind)
    for file, digest in origin.files.items() if origin is not None else ():
        if problem := path_problem(file):
            raise _Broken(f"The record names a file that {problem}")
        if not _DIGEST.fullmatch(digest):
            raise _Broken("The record has a checksum that is none")
    return origin


def _decoded(path: str, kind: type[R]) -> R | None:
    data = _bytes(path)
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise _Broken(f"The record cannot be read: {error}") from None


def _bytes(path: str) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _Broken(f"The record cannot be read: {_words(error)}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _Broken("The record is no file")
        if status.st_size > RECORD_BYTES:
            raise _Broken(f"The record is larger than {RECORD_BYTES} bytes")
        return os.read(descriptor, RECORD_BYTES)
    except OSError as error:
        raise _Broken(f"The record cannot be read: {_words(error)}") from None
    finally:
        os.close(descriptor)


def _words(error: OSError) -> str:
    return "it is a link" if error.errno == errno.ELOOP else error.strerror or str(error)


def _listed(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]
    except OSError:
        return []


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return False
