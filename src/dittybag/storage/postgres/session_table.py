"""HTTP sessions in PostgreSQL."""

from __future__ import annotations

from dittybag.domain.ports import StoredSession
from dittybag.storage.postgres.connections import PostgresConnection
from dittybag.storage.postgres.rows import first_row


class SessionTable:
    """See `dittybag.domain.ports.SessionRepository`."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    async def get(self, id: str) -> StoredSession | None:
        sql = "SELECT state, used_at, owner FROM sessions WHERE id = $1"
        row = await first_row(self._connection, sql, id)
        return None if row is None else StoredSession(*row)


async def save(connection: PostgresConnection, id: str, owner: str, state: bytes, used_at: int) -> None:
    """Insert or replace a session."""
    await connection.execute(
        "INSERT INTO sessions (id, owner, state, used_at) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT (id) DO UPDATE SET state = excluded.state, used_at = excluded.used_at",
        id,
        owner,
        state,
        used_at,
    )


async def delete(connection: PostgresConnection, id: str) -> bool:
    """Delete a session. Returns whether it existed."""
    return await connection.execute("DELETE FROM sessions WHERE id = $1", id) == "DELETE 1"


async def delete_with(connection: PostgresConnection, text: bytes) -> None:
    """Delete the sessions whose state contains a text."""
    await connection.execute("DELETE FROM sessions WHERE position($1::bytea IN state) > 0", text)


async def prune(connection: PostgresConnection, before: int, owner: str, max_count: int) -> None:
    """Delete sessions last used before `before`, and the oldest of more than `max_count` of an owner."""
    await connection.execute("DELETE FROM sessions WHERE used_at < $1", before)
    await connection.execute(
        "DELETE FROM sessions WHERE id IN"
        " (SELECT id FROM sessions WHERE owner = $1 ORDER BY used_at DESC OFFSET $2)",
        owner,
        max_count,
    )
