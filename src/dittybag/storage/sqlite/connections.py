"""Connections to a SQLite file, and the translation of its errors."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import apsw

from dittybag.domain.errors import (
    StorageBusy,
    StorageDamaged,
    StorageError,
    StorageFailed,
    StorageForeign,
    StorageFull,
    StorageReadOnly,
)

#: How long a write waits for the locks of other processes.
BUSY_SECONDS: Final = 30.0

#: Identifies Dittybag's files: "Ditt".
APPLICATION_ID: Final = 0x44697474

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
)


def connect(path: str, *, writable: bool) -> apsw.Connection:
    """Open a file. Without `writable`, the connection rejects writes."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    with translate_errors(path):
        connection = apsw.Connection(path, flags=flags)
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
        time.sleep(random.uniform(0.0002, min(0.001 * (attempts + 1), 0.01)))  # noqa: S311  # no secret
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
    if isinstance(error, apsw.CantOpenError) and not _is_writable(where):
        return StorageReadOnly(where)
    for kind, error_class in _ERROR_CLASSES:
        if isinstance(error, kind):
            return error_class(where)
    return StorageFailed(where, str(error))


def _is_writable(path: str) -> bool:
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
    """Raise `StorageForeign` for a file that Dittybag has not created.

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
    if header and not (is_sqlite and int.from_bytes(header[68:72], "big") == APPLICATION_ID):
        raise StorageForeign(path)


def prepare_folder(path: str) -> None:
    """Create the folder of a database, with access for its owner only."""
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120  # pathlib is slow to import
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    except PermissionError as error:
        raise StorageReadOnly(path) from error
    except OSError as error:
        raise StorageFailed(path, str(error)) from error


def file_identity(path: str) -> tuple[int, int] | None:
    """Return the device and inode of a file; None if it does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116  # pathlib is slow to import
    except OSError:
        return None
    return status.st_dev, status.st_ino


def require_same_file(path: str, opened: tuple[int, int] | None) -> None:
    """Raise `StorageFailed` if the path no longer refers to the file that was opened."""
    if file_identity(path) != opened:
        raise StorageFailed(path, "the file was moved, deleted or replaced while it was in use")
