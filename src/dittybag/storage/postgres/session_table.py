"""Sessions of HTTP clients in PostgreSQL."""

from __future__ import annotations

from dittybag.domain.ports import StoredSession
from dittybag.storage.postgres.connections import Connection
from dittybag.storage.postgres.rows import first_row


class SessionTable:
    """Reading sessions."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, id: str) -> StoredSession | None:
        row = await first_row(self._connection, "SELECT state, used_at FROM sessions WHERE id = $1", id)
        return None if row is None else StoredSession(row[0], row[1])


async def keep(connection: Connection, id: str, state: bytes, used_at: int) -> None:
    """Store a session, in place of what it was before."""
    await connection.execute(
        "INSERT INTO sessions (id, state, used_at) VALUES ($1, $2, $3)"
        " ON CONFLICT (id) DO UPDATE SET state = excluded.state, used_at = excluded.used_at",
        id,
        state,
        used_at,
    )


async def end(connection: Connection, id: str) -> bool:
    """Forget a session; whether there was one."""
    return await connection.execute("DELETE FROM sessions WHERE id = $1", id) == "DELETE 1"


async def forget(connection: Connection, before: int, most: int) -> None:
    """Forget those that were not used since, and the oldest of too many."""
    await connection.execute("DELETE FROM sessions WHERE used_at < $1", before)
    await connection.execute(
        "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions ORDER BY used_at DESC OFFSET $1)", most
    )
