"""Trigram indexes, where PostgreSQL has the extension pg_trgm. Without them, searches read every text."""

from __future__ import annotations

from typing import Final

from dittybag.storage.postgres.connections import DRIVER_ERRORS, Connection, quoted

#: What searches compare, table by table; the very expressions of `contains`.
_SEARCHED: Final = {
    "prompts": ("coalesce(folded_title, lower(title))", "coalesce(folded_content, lower(content))"),
    "resources": ("lower(name)", "coalesce(folded_title, lower(title))", "folded_content"),
    "tasks": ("coalesce(folded_title, lower(title))", "coalesce(folded_notes, lower(notes))"),
}

_EXTENSION: Final = """SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
                       WHERE extname = 'pg_trgm'"""


async def are_missing(connection: Connection) -> bool:
    """Whether there could be trigram indexes, but are none."""
    sql = f"SELECT EXISTS ({_EXTENSION}) AND to_regclass('prompts_trigrams') IS NULL"
    return bool(await connection.fetchval(sql))


async def create_trigram_indexes(connection: Connection) -> None:
    """Make the indexes, if there can be any."""
    if await connection.fetchval(_EXTENSION) is None:
        await _try_to_install(connection)
    home = await connection.fetchval(_EXTENSION)
    if home is None:
        return
    for table, expressions in _SEARCHED.items():
        columns = ", ".join(f"({expression}) {quoted(home)}.gin_trgm_ops" for expression in expressions)
        # The list of what is yet to be sorted in is kept short: whoever finds it full sorts all of it.
        await connection.execute(
            f"""CREATE INDEX IF NOT EXISTS {table}_trigrams ON {table} USING gin ({columns})
                WITH (gin_pending_list_limit = 256)"""
        )


async def _try_to_install(connection: Connection) -> None:
    """Install the extension, where it exists and we may."""
    if not await connection.fetchval("SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'"):
        return
    try:
        # Not in a schema of ours: it serves the whole database, and must outlive any workspace.
        await connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public")
    except DRIVER_ERRORS:
        # We may not, or another workspace does it right now. If the connection broke, the next query says so.
        return
