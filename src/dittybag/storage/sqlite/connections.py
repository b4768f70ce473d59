"""Connections to a SQLite file, and what its errors mean."""

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

#: How long a write waits for those of other processes.
BUSY_SECONDS: Final = 30.0

#: Tells Dittybag's files from other programs': "Satc".
APPLICATION_ID: Final = 0x53617463

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
    """Open a file. A reader may not write, whatever it is asked to do."""
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
    """A busy handler that tries again soon, at random moments, so that nobody starves."""
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
    """Errors of SQLite, as errors of the store."""
    try:
        yield
    except apsw.Error as error:
        raise to_storage_error(error, where) from error


def to_storage_error(error: apsw.Error, where: str) -> StorageError:
    """What an error of SQLite says about the store."""
    if isinstance(error, apsw.CantOpenError) and not _is_writable(where):
        return StorageReadOnly(where)
    for kind, error_class in _ERROR_CLASSES:
        if isinstance(error, kind):
            return error_class(where)
    return StorageFailed(where, str(error))


def _is_writable(path: str) -> bool:
    """Whether a file can be made or written, as far as permissions go."""
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
    """Raises `StorageForeign` for a file that other programs have written.

    SQLite must not open it as a database: closing it, it would tidy up another program's log.
    """
    if not os.path.exists(path):  # noqa: PTH110  # pathlib is slow to import
        return
    if not os.path.isfile(path):  # noqa: PTH113
        raise StorageForeign(path)
    with translate_errors(path):
        # Through SQLite: closing a descriptor of one's own would give up the locks of this process's
        # connections (https://www.sqlite.org/howtocorrupt.html, 2.2).
        file = apsw.VFSFile("", path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
        try:
            header = file.xRead(min(file.xFileSize(), _HEADER_BYTES), 0)
        finally:
            file.xClose()
    # https://www.sqlite.org/fileformat.html: what every first page begins with, and our own mark, which is
    # there from its very first version on.
    whole = len(header) == _HEADER_BYTES and header[:16] == b"SQLite format 3\0"
    if header and not (whole and int.from_bytes(header[68:72], "big") == APPLICATION_ID):
        raise StorageForeign(path)


def prepare_folder(path: str) -> None:
    """Make the folder of a database, for its owner only."""
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120  # pathlib is slow to import
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    except PermissionError as error:
        raise StorageReadOnly(path) from error
    except OSError as error:
        raise StorageFailed(path, str(error)) from error


def file_identity(path: str) -> tuple[int, int] | None:
    """Which file has this name now; nothing if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116  # pathlib is slow to import
    except OSError:
        return None
    return status.st_dev, status.st_ino


def require_same_file(path: str, opened: tuple[int, int] | None) -> None:
    """Raises `StorageFailed` if a file that was opened is not the one that others would find there."""
    if file_identity(path) != opened:
        raise StorageFailed(path, "the file was moved, deleted or replaced while it was in use")
