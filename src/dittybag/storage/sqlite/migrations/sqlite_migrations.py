"""Numbered schema migrations. Each is committed together with its record; in a new file, all of them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Final

import apsw

from dittybag.domain.errors import StorageFailed, StorageTooNew
from dittybag.storage.sql.migration_files import FOLD_ACCENTS, INDEX_WORDS, NEWEST_SCHEMA, read_migrations
from dittybag.storage.sqlite.sqlite_connections import APPLICATION_ID, BUSY_SECONDS, connect, translate_errors

_CREATE_RECORDS: Final = """
CREATE TABLE IF NOT EXISTS migrations (
    number     INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT
"""


def load_migrations() -> list[tuple[int, str, str]]:
    """Return the number, name and SQL of every migration."""
    return read_migrations(os.path.dirname(__file__))  # noqa: PTH120  # pathlib is slow to import


def is_current(connection: apsw.Connection, path: str) -> bool:
    """Whether the schema is the newest. Raises `StorageTooNew` for a newer version of Dittybag."""
    with translate_errors(path):
        found = int(connection.execute("PRAGMA user_version").get)
    if found > NEWEST_SCHEMA:
        raise StorageTooNew(path, found=found, known=NEWEST_SCHEMA)
    return found == NEWEST_SCHEMA


def require_current(connection: apsw.Connection, path: str) -> None:
    """Raise `StorageError` unless the schema is the newest."""
    if not is_current(connection, path):
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
            migrations = load_migrations()
            # A new file needs no record of how far it got, so all of them are one transaction.
            is_new = connection.pragma("user_version") == 0
            for group in [migrations] if is_new else [[migration] for migration in migrations]:
                _apply(connection, path, group)
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


def _apply(connection: apsw.Connection, path: str, migrations: Sequence[tuple[int, str, str]]) -> None:
    """Apply those of the migrations that are missing, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number, name, sql in migrations:
            if not is_current(connection, path) and connection.pragma("user_version") < number:
                _apply_one(connection, number, name, sql)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _apply_one(connection: apsw.Connection, number: int, name: str, sql: str) -> None:
    connection.execute(_CREATE_RECORDS)
    connection.execute(sql)
    if number == FOLD_ACCENTS:
        # Imported here because it is needed once in the life of a database.
        from dittybag.storage.sqlite.task_index import refold_index

        refold_index(connection)
    # A new file has nothing to index.
    if number == INDEX_WORDS and connection.execute("SELECT EXISTS (SELECT 1 FROM changes)").get:
        from dittybag.storage.sqlite.word_index import fill_word_index

        fill_word_index(connection, number)
    record = (number, name, time.time_ns() // 1000)
    connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", record)
    connection.pragma("user_version", number)
