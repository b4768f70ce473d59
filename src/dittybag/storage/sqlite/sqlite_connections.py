"""Connections to a SQLite file, how they wait for other processes, and the translation of its errors."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import apsw

from dittybag import files
from dittybag.domain.errors import (
    StorageBusy,
    StorageDamaged,
    StorageError,
    StorageFailed,
    StorageForeign,
    StorageFull,
    StorageReadOnly,
    StorageReplaced,
    StorageUnreleased,
)

#: How long a write waits for the locks of other processes.
BUSY_SECONDS: Final = 30.0

#: Identifies Dittybag's files: "Dbag". Until shortly before the first release, it was "Ditt".
APPLICATION_ID: Final = 0x44626167
_UNRELEASED_ID: Final = 0x44697474

_HEADER_BYTES: Final = 100

_PRAGMAS: Final = (
    # An acknowledged write survives power loss, on a Mac too.
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA foreign_keys = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA cache_size = -16384",
    "PRAGMA temp_store = MEMORY",
    # A write-ahead log that has become longer is cut when it starts over.
    "PRAGMA journal_size_limit = 33554432",
)


def connect(path: str, *, writable: bool) -> apsw.Connection:
    """Open a file. Without `writable`, the connection rejects writes."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    return _connect(path, path, flags, writable=writable)


def connect_unwritable(path: str) -> apsw.Connection:
    """Open a file that cannot be written, in a folder where SQLite cannot create files."""
    if os.path.exists(f"{os.path.realpath(path)}-wal"):  # noqa: PTH110  # pathlib is slow to import
        # Another process may be writing it: SQLite reads the log.
        return _connect(path, path, apsw.SQLITE_OPEN_READONLY, writable=False)
    from urllib.parse import quote

    url = f"file:{quote(os.path.abspath(path))}?immutable=1"  # noqa: PTH100
    return _connect(path, url, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI, writable=False)


def _connect(path: str, name: str, flags: int, *, writable: bool) -> apsw.Connection:
    with translate_errors(path):
        connection = apsw.Connection(name, flags=flags)
        try:
            connection.set_busy_handler(_busy_handler())
            for pragma in _PRAGMAS:
                connection.execute(pragma)
            if not writable:
                connection.execute("PRAGMA query_only = ON")
        except BaseException:
            connection.close()
            raise
    return connection


def _busy_handler() -> Callable[[int], bool]:
    """Return a busy handler that retries after short random pauses, so that no process starves."""
    deadline = 0.0

    def wait(attempts: int) -> bool:
        nonlocal deadline
        now = time.monotonic()
        if attempts == 0:
            deadline = now + BUSY_SECONDS
        elif now > deadline:
            return False
        from random import uniform

        time.sleep(uniform(0.0002, min(0.001 * (attempts + 1), 0.01)))  # noqa: S311  # no secret
        return True

    return wait


@contextmanager
def translate_errors(where: str) -> Iterator[None]:
    """Translate SQLite errors into storage errors."""
    try:
        yield
    except apsw.Error as error:
        raise to_storage_error(error, where) from error


def to_storage_error(error: apsw.Error, where: str) -> StorageError:
    """Return the storage error for a SQLite error."""
    if isinstance(error, apsw.CantOpenError) and not is_writable(where):
        return StorageReadOnly(where)
    for kind, error_class in _ERROR_CLASSES:
        if isinstance(error, kind):
            return error_class(where)
    return StorageFailed(where, str(error))


def is_writable(path: str) -> bool:
    """Whether permissions allow creating or writing a file."""
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120  # pathlib is slow to import
    return os.access(folder, os.W_OK) and (not os.path.exists(path) or os.access(path, os.W_OK))  # noqa: PTH110


_ERROR_CLASSES: Final[tuple[tuple[type[apsw.Error], type[StorageError]], ...]] = (
    (apsw.BusyError, StorageBusy),
    (apsw.LockedError, StorageBusy),
    (apsw.FullError, StorageFull),
    (apsw.ReadOnlyError, StorageReadOnly),
    (apsw.PermissionsError, StorageReadOnly),
    (apsw.NotADBError, StorageForeign),
    (apsw.CorruptError, StorageDamaged),
)


def require_dittybag_file(path: str) -> None:
    """Raise `StorageForeign` for a file that Dittybag has not created, or `StorageUnreleased` for an old one.

    SQLite must not open it as a database: on closing, it would checkpoint another program's write-ahead log.
    """
    if not os.path.exists(path):  # noqa: PTH110  # pathlib is slow to import
        return
    if not os.path.isfile(path):  # noqa: PTH113
        raise StorageForeign(path)
    with translate_errors(path):
        # Read through SQLite: closing another file descriptor would release the locks of this process's
        # connections (https://www.sqlite.org/howtocorrupt.html, 2.2).
        file = apsw.VFSFile("", path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
        try:
            header = file.xRead(min(file.xFileSize(), _HEADER_BYTES), 0)
        finally:
            file.xClose()
    # https://www.sqlite.org/fileformat.html: the header string and the application id.
    is_sqlite = len(header) == _HEADER_BYTES and header[:16] == b"SQLite format 3\0"
    application_id = int.from_bytes(header[68:72], "big") if is_sqlite else None
    if application_id == _UNRELEASED_ID:
        raise StorageUnreleased(path)
    if header and application_id != APPLICATION_ID:
        raise StorageForeign(path)


def prepare_folder(path: str) -> None:
    """Create the folder of a database, with access for its owner only."""
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120  # pathlib is slow to import
    with translate_os_errors(path):
        files.make_folders(folder)


def create_private_file(path: str) -> None:
    """Create an empty database file with access for its owner only, unless there is one.

    SQLite would use the default mode. It creates the write-ahead log with the mode of the database.
    """
    if os.path.exists(path):  # noqa: PTH110  # pathlib is slow to import
        return
    with translate_os_errors(path), suppress(FileExistsError):
        os.close(os.open(path, files.NEW_FILE, 0o600))


@contextmanager
def translate_os_errors(path: str) -> Iterator[None]:
    """Translate file system errors into storage errors."""
    try:
        yield
    except OSError as error:
        if isinstance(error, PermissionError) or error.errno == errno.EROFS:
            raise StorageReadOnly(path) from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(path) from error
        raise StorageFailed(path, files.describe(error)) from error


class OpenFiles:
    """The files of an open database. A write to a file that is no longer in place would be lost."""

    def __init__(self, path: str) -> None:
        """Create this after the first read, which creates the write-ahead log and its index."""
        self._path = path
        # SQLite creates them next to the target of a symbolic link.
        target = os.path.realpath(path)
        self._identities = {name: _identity(name) for name in (path, f"{target}-wal", f"{target}-shm")}

    def require_in_place(self) -> None:
        """Raise `StorageReplaced` if one of the files was moved, deleted or replaced."""
        for name, identity in self._identities.items():
            if _identity(name) != identity:
                raise StorageReplaced(self._path, f"{name} is no longer the file that was opened")


def _identity(path: str) -> tuple[int, int] | None:
    """Return the device and inode of a file; None if it does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116  # pathlib is slow to import
    except OSError:
        return None
    return status.st_dev, status.st_ino
