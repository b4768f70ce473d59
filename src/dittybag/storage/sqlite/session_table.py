"""Sessions of HTTP clients in SQLite."""

from __future__ import annotations

import apsw

from dittybag.domain.ports import StoredSession
from dittybag.storage.sqlite.rows import first_row


class SessionTable:
    """Reading sessions."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def get(self, id: str) -> StoredSession | None:
        row = first_row(self._connection, "SELECT state, used_at FROM sessions WHERE id = ?", (id,))
        return None if row is None else StoredSession(row[0], row[1])


def keep(connection: apsw.Connection, id: str, state: bytes, used_at: int) -> None:
    """Store a session, in place of what it was before."""
    connection.execute(
        "INSERT INTO sessions (id, state, used_at) VALUES (?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET state = excluded.state, used_at = excluded.used_at",
        (id, state, used_at),
    )


def end(connection: apsw.Connection, id: str) -> bool:
    """Forget a session; whether there was one."""
    connection.execute("DELETE FROM sessions WHERE id = ?", (id,))
    return connection.changes() > 0


def forget(connection: apsw.Connection, before: int, most: int) -> None:
    """Forget those that were not used since, and the oldest of too many."""
    connection.execute("DELETE FROM sessions WHERE used_at < ?", (before,))
    connection.execute(
        "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions ORDER BY used_at DESC LIMIT -1 OFFSET ?)",
        (most,),
    )
