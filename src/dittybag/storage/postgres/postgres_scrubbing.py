"""Removal of deleted data from the tables and indexes of a PostgreSQL workspace."""

from __future__ import annotations

import asyncio
from typing import Final

from dittybag.domain.errors import StorageBusy, StorageFailed
from dittybag.storage.postgres.postgres_connections import (
    DRIVER_ERRORS,
    LOCK_SECONDS,
    PostgresAddress,
    PostgresConnection,
    connect,
    translate_error,
)

#: The tables that hold content. VACUUM FULL rewrites each with its indexes, without dead rows.
_TABLES: Final = (
    "projects",
    "prompts",
    "tag_counts",
    "resources",
    "resource_counts",
    "tasks",
    "open_tasks",
    "open_labels",
    "claims",
    "contents",
    "content_uses",
    "changes",
    "sessions",
)

#: The maximum duration of rewriting one table.
_REWRITE_SECONDS: Final = 3600.0
_POLL_SECONDS: Final = 0.05

#: Sessions of this database that can still see rows deleted before a transaction.
_OLDER_SNAPSHOTS: Final = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
      AND backend_xmin IS NOT NULL AND age(backend_xmin) > age($1::text::xid)
"""


async def scrub(where: PostgresAddress) -> None:
    """Rewrite the tables without deleted rows, on a connection to the server itself.

    Raises `StorageBusy` if others read an older state for too long, and `StorageFailed` if the role may not
    rewrite a table.
    """
    if where.direct is None:
        raise StorageFailed(
            where.display_url, "VACUUM needs the server itself: add direct=HOST:PORT to the URL"
        )
    connection = await connect(where.direct, writable=True)
    try:
        await connection.execute("SET statement_timeout = 0")
        await _wait_for_older_snapshots(connection, where)
        for table in _TABLES:
            await _rewrite(connection, where, table)
        # Old samples of the texts are dead rows here. A role that does not own the catalog skips it.
        await connection.execute("VACUUM FULL pg_statistic", timeout=_REWRITE_SECONDS)
        await connection.close(timeout=1)
    except DRIVER_ERRORS as error:
        raise translate_error(error, connection, where.display_url) from error
    finally:
        connection.terminate()


async def _wait_for_older_snapshots(connection: PostgresConnection, where: PostgresAddress) -> None:
    """Wait until nobody can see the deleted rows: until then, VACUUM keeps them."""
    transaction = await connection.fetchval("SELECT pg_current_xact_id()::xid::text")
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LOCK_SECONDS
    while await connection.fetchval(_OLDER_SNAPSHOTS, transaction):
        if loop.time() > deadline:
            raise StorageBusy(where.display_url)
        await asyncio.sleep(_POLL_SECONDS)


async def _rewrite(connection: PostgresConnection, where: PostgresAddress, table: str) -> None:
    find_file = f"SELECT pg_relation_filenode('{table}')"
    before = await connection.fetchval(find_file)
    # The planner's statistics contain samples of the texts.
    await connection.execute(f"VACUUM (FULL, ANALYZE) {table}", timeout=_REWRITE_SECONDS)
    if await connection.fetchval(find_file) == before:
        # PostgreSQL only warns about a missing permission.
        raise StorageFailed(where.display_url, f"the role must own the table {table} to rewrite it")
