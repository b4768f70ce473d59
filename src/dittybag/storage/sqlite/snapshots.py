"""Snapshots of a SQLite file: read-only connections that leave the file and its log as they are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import apsw

from dittybag.storage.sqlite.sqlite_connections import require_dittybag_file, translate_errors

#: Virtual machine steps between two checks for Ctrl-C.
_PROGRESS_STEPS: Final = 200_000


@contextmanager
def open_snapshot(path: str, *, immutable: bool = False) -> Iterator[apsw.Connection]:
    """Open a read-only connection in a transaction. A write-ahead log that others left is not checkpointed.

    `immutable`: no other process uses the file, so SQLite needs no shared-memory file.
    """
    require_dittybag_file(path)
    with translate_errors(path):
        connection = _open_read_only(path, immutable=immutable)
        try:
            yield connection
        finally:
            connection.close()


def _open_read_only(path: str, *, immutable: bool) -> apsw.Connection:
    log_size = _size(f"{path}-wal")
    if immutable:
        return _begin_read(_immutable(path))
    try:
        return _begin_read(path, leave_log=log_size > 0)
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        # SQLite cannot create the shared-memory file in a read-only folder.
        if log_size:
            raise
        return _begin_read(_immutable(path))


def _begin_read(path: str, *, leave_log: bool = False) -> apsw.Connection:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(leave_log))
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.set_busy_timeout(5000)
        connection.set_progress_handler(lambda: False, _PROGRESS_STEPS)
        # Closing the last connection may checkpoint what others wrote meanwhile.
        connection.execute("PRAGMA checkpoint_fullfsync = ON")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _immutable(path: str) -> str:
    # Imported here because it is rarely needed.
    from urllib.parse import quote

    return f"file:{quote(os.path.abspath(path))}?immutable=1"  # noqa: PTH100  # pathlib is slow to import


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return 0
