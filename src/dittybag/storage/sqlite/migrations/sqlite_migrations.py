"""Numbered schema migrations. Those that a file lacks are committed together, with their records."""

from __future__ import annotations

import os
import time
from typing import Any, Final

import apsw

from dittybag.domain.errors import StorageFailed, StorageTooNew, StorageUnreleased
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA, Migration, are_same, read_migrations
from dittybag.storage.sqlite.sqlite_connections import APPLICATION_ID, BUSY_SECONDS, connect, translate_errors
from dittybag.storage.sqlite.sqlite_driver import SqliteDriver, run_synchronously

_CREATE_RECORDS: Final = """
CREATE TABLE IF NOT EXISTS applied_migrations (
    number     INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    checksum   INTEGER NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT
"""


def load_migrations() -> list[Migration]:
    """Return every migration."""
    return read_migrations(os.path.dirname(__file__))  # noqa: PTH120  # pathlib is slow to import


def schema_version(connection: apsw.Connection, path: str) -> int:
    """Return the schema version, also of a newer version; 0 without tables.

    Raises `StorageUnreleased` for the tables of a version before the first release.
    """
    with translate_errors(path):
        found = int(connection.pragma("user_version"))
        if found == 0:
            return 0
        rows: list[Any] = connection.execute(
            "SELECT checksum FROM applied_migrations ORDER BY number"
        ).fetchall()
    if not are_same([checksum for (checksum,) in rows], load_migrations()):
        raise StorageUnreleased(path)
    return found


def is_current(connection: apsw.Connection, path: str) -> bool:
    """Whether the schema is the newest. Raises `StorageTooNew` and `StorageUnreleased`."""
    found = schema_version(connection, path)
    _refuse_newer(found, path)
    return found == NEWEST_SCHEMA


def _refuse_newer(found: int, path: str) -> None:
    if found > NEWEST_SCHEMA:
        raise StorageTooNew(path, found=found, known=NEWEST_SCHEMA)


def require_current(connection: apsw.Connection, path: str) -> None:
    """Raise `StorageError` unless the schema of an open store is still the newest."""
    with translate_errors(path):
        found = int(connection.execute("PRAGMA user_version").get)
    _refuse_newer(found, path)
    if found != NEWEST_SCHEMA:
        raise StorageFailed(path, "the schema is no longer the one of this version of Dittybag")


def migrate(path: str) -> None:
    """Migrate a new or old file to the newest schema. Several processes may do so at the same time."""
    connection = connect(path, writable=True)
    try:
        with translate_errors(path):
            # Written first, and directly to the file: there is no write-ahead log yet.
            if connection.pragma("application_id") == 0:
                connection.pragma("application_id", APPLICATION_ID)
            _enable_write_ahead_log(connection, path)
            _apply_missing(connection, path)
    finally:
        connection.close()


def _enable_write_ahead_log(connection: apsw.Connection, path: str) -> None:
    """Switch to a write-ahead log. SQLite does not call the busy handler here, so retry."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            mode = connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
            continue
        if mode != "wal":
            raise StorageFailed(path, "SQLite cannot use a write-ahead log here")
        return


def _apply_missing(connection: apsw.Connection, path: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not is_current(connection, path):
            create_schema(connection, NEWEST_SCHEMA)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def create_schema(connection: apsw.Connection, number: int) -> None:
    """Apply the missing migrations up to this one."""
    done = connection.pragma("user_version")
    connection.execute(_CREATE_RECORDS)
    for migration in load_migrations()[done:number]:
        _apply(connection, migration)


def _apply(connection: apsw.Connection, migration: Migration) -> None:
    if (function := migration.function) is None:
        connection.execute(migration.text)
    else:
        run_synchronously(function(SqliteDriver(connection)))
    record = (migration.number, migration.name, migration.checksum, time.time_ns() // 1000)
    connection.execute("INSERT INTO applied_migrations VALUES (?, ?, ?, ?)", record)
    connection.pragma("user_version", migration.number)
