"""Trigram indexes, if the extension pg_trgm is available. Without them, searches read every text."""

from __future__ import annotations

from typing import Final

from dittybag.storage.postgres.postgres_connections import (
    DRIVER_ERRORS,
    INDEX_LIST_LIMIT,
    REBUILD_SECONDS,
    PostgresConnection,
    quoted,
)

#: The indexed expressions of each table, the same as in `text_search.contains`.
_SEARCHED: Final = {
    "prompts": ("coalesce(folded_title, lower(title))", "coalesce(folded_content, lower(content))"),
    "resources": ("lower(name)", "lower(uri)", "coalesce(folded_title, lower(title))", "folded_content"),
    "tasks": ("coalesce(folded_title, lower(title))", "coalesce(folded_notes, lower(notes))"),
}

_EXTENSION: Final = """SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
                       WHERE extname = 'pg_trgm'"""


async def are_missing(connection: PostgresConnection) -> bool:
    """Whether the extension is installed but some of the indexes do not exist."""
    names = ", ".join(f"('{table}_trigrams')" for table in _SEARCHED)
    missing = f"EXISTS (SELECT FROM (VALUES {names}) AS indexes (name) WHERE to_regclass(name) IS NULL)"
    return bool(await connection.fetchval(f"SELECT EXISTS ({_EXTENSION}) AND {missing}"))


async def create_trigram_indexes(connection: PostgresConnection) -> None:
    """Create the indexes, if the extension is installed."""
    home = await connection.fetchval(_EXTENSION)
    if home is None:
        return
    for table, expressions in _SEARCHED.items():
        columns = ", ".join(f"({expression}) {quoted(home)}.gin_trgm_ops" for expression in expressions)
        await connection.execute(
            f"""CREATE INDEX IF NOT EXISTS {table}_trigrams ON {table} USING gin ({columns})
                WITH (gin_pending_list_limit = {INDEX_LIST_LIMIT})""",
            timeout=REBUILD_SECONDS,
        )


async def install_trigrams(connection: PostgresConnection) -> None:
    """Install the extension, if it is available and the role has the right to. Not in a transaction."""
    if await connection.fetchval(_EXTENSION) is not None:
        return
    if not await connection.fetchval("SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'"):
        return
    try:
        # Not in the workspace's schema: the extension belongs to the database and must outlive the workspace.
        await connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public")
    except DRIVER_ERRORS:
        # No permission, or another process is installing it. A lost connection fails the next query.
        return
