"""Numbered schema migrations. Those that a schema lacks are committed together, with their records."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from dittybag.domain.errors import StorageFailed, StorageForeign, StorageTooNew, StorageUnreleased
from dittybag.storage.postgres.postgres_connections import (
    DRIVER_ERRORS,
    REBUILD_SECONDS,
    PostgresAddress,
    PostgresConnection,
    connect,
    lock_keys,
    quoted,
    translate_error,
)
from dittybag.storage.postgres.postgres_driver import PostgresDriver
from dittybag.storage.postgres.trigram_indexes import create_trigram_indexes, install_trigrams
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA, Migration, are_same, read_migrations

#: The table comment that distinguishes our tables from others of the same name.
_MARK: Final = "The migrations of a Dittybag workspace"

_CREATE_RECORDS: Final = f"""
CREATE TABLE IF NOT EXISTS applied_migrations (
    number     bigint PRIMARY KEY,
    name       text   COLLATE "C" NOT NULL,
    checksum   bigint NOT NULL,
    applied_at bigint NOT NULL
);
COMMENT ON TABLE applied_migrations IS '{_MARK}'
"""

#: The table of applied migrations until shortly before the first release.
_UNRELEASED_RECORDS: Final = "migrations"

#: All tables. Another program's schema may contain tables of the same name.
_OWN_TABLES: Final = (
    "applied_migrations",
    "projects",
    "prompts",
    "resources",
    "tasks",
    "contents",
    "changes",
    "counters",
    "writers",
    "sessions",
    "users",
    "tokens",
    "members",
    "account_events",
    "restricted_projects",
    "content_uses",
    "pending_purges",
    "task_edges",
    "open_tasks",
    "open_labels",
    "claims",
    "prompt_counts",
    "tag_counts",
    "resource_counts",
)


def load_migrations() -> list[Migration]:
    """Return every migration."""
    return read_migrations(os.path.dirname(__file__))  # noqa: PTH120  # pathlib is slow to import


async def is_current(connection: PostgresConnection, where: PostgresAddress) -> bool:
    """Whether the schema is the newest.

    Raises `StorageTooNew` for tables of a newer version, `StorageUnreleased` for those from before the first
    release, and `StorageForeign` for those of another program.
    """
    return await _version(connection, where) == NEWEST_SCHEMA


async def is_missing(connection: PostgresConnection, where: PostgresAddress) -> bool:
    """Whether there are no tables of a workspace. Raises the same errors as `is_current`."""
    return await _version(connection, where) == 0


async def _version(connection: PostgresConnection, where: PostgresAddress) -> int:
    found = await schema_version(connection, where)
    _refuse_newer(found, where)
    return found


async def schema_version(connection: PostgresConnection, where: PostgresAddress) -> int:
    """Return the schema version, also of a newer version; 0 without tables.

    Raises `StorageForeign` and `StorageUnreleased`.
    """
    rows = await connection.fetch(
        """SELECT relname::text, obj_description(pg_class.oid, 'pg_class') FROM pg_class
           JOIN pg_namespace ON pg_namespace.oid = relnamespace
           WHERE nspname = current_schema() AND relname::text = ANY($1)""",
        (*_OWN_TABLES, _UNRELEASED_RECORDS),
    )
    comments: dict[str, str | None] = {row[0]: row[1] for row in rows}
    if comments.pop(_UNRELEASED_RECORDS, None) == _MARK:
        raise StorageUnreleased(where.display_url)
    if not comments:
        return 0
    if comments.get("applied_migrations") != _MARK:
        raise StorageForeign(where.display_url)
    recorded = await connection.fetch("SELECT number, checksum FROM applied_migrations ORDER BY number")
    if not are_same([checksum for _, checksum in recorded], load_migrations()):
        raise StorageUnreleased(where.display_url)
    return int(recorded[-1][0]) if recorded else 0


def _refuse_newer(found: int, where: PostgresAddress) -> None:
    if found > NEWEST_SCHEMA:
        raise StorageTooNew(where.display_url, found=found, known=NEWEST_SCHEMA)


def require_current(version: int, where: PostgresAddress) -> None:
    """Raise `StorageError` unless this is the newest schema version."""
    _refuse_newer(version, where)
    if version < NEWEST_SCHEMA:
        raise StorageFailed(where.display_url, "the schema is no longer the one of this version of Dittybag")


async def migrate(where: PostgresAddress, schema: str) -> None:
    """Migrate a new or old schema to the newest version. Several processes may do so at the same time."""
    connection = await connect(where, writable=True)
    try:
        async with _locked(connection, schema):
            await _apply_missing(connection, where)
        await install_trigrams(connection)
        async with _locked(connection, schema):
            await create_trigram_indexes(connection)
        await connection.close(timeout=1)
    except DRIVER_ERRORS as error:
        raise translate_error(error, connection, where.display_url) from error
    finally:
        connection.terminate()


@asynccontextmanager
async def _locked(connection: PostgresConnection, schema: str) -> AsyncIterator[None]:
    """Run the block in a transaction with the writers' lock, so that there are no writes meanwhile."""
    await connection.begin(
        "SET LOCAL statement_timeout = 0", f"SELECT pg_advisory_xact_lock({lock_keys(schema)})"
    )
    yield
    # After an error, the connection is closed.
    await connection.execute("COMMIT")


async def _apply_missing(connection: PostgresConnection, where: PostgresAddress) -> None:
    if where.schema is not None and await connection.fetchval("SELECT current_schema()") is None:
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(where.schema)}")
    done = await _version(connection, where)
    if done == 0 and await connection.fetchval("SHOW server_encoding") != "UTF8":
        raise StorageFailed(where.display_url, "the database must have the encoding UTF8 to store any text")
    missing = load_migrations()[done:]
    if missing:
        await connection.execute(_CREATE_RECORDS)
    for migration in missing:
        if (function := migration.function) is None:
            await connection.execute(migration.text, timeout=REBUILD_SECONDS)
        else:
            await function(PostgresDriver(connection))
        record = (migration.number, migration.name, migration.checksum, time.time_ns() // 1000)
        await connection.execute("INSERT INTO applied_migrations VALUES ($1, $2, $3, $4)", *record)
