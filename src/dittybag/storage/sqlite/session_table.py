"""HTTP sessions in SQLite."""

from __future__ import annotations

import apsw

from dittybag.domain.ports import StoredSession
from dittybag.storage.sqlite.rows import first_row


class SessionTable:
    """See `dittybag.domain.ports.SessionRepository`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def get(self, id: str) -> StoredSession | None:
        row = first_row(self._connection, "SELECT state, used_at, owner FROM sessions WHERE id = ?", (id,))
        return None if row is None else StoredSession(*row)


def save(connection: apsw.Connection, id: str, owner: str, state: bytes, used_at: int) -> None:
    """Insert or replace a session."""
    connection.execute(
        "INSERT INTO sessions (id, owner, state, used_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET state = excluded.state, used_at = excluded.used_at",
        (id, owner, state, used_at),
    )


def delete(connection: apsw.Connection, id: str) -> bool:
    """Delete a session. Returns whether it existed."""
    connection.execute("DELETE FROM sessions WHERE id = ?", (id,))
    return connection.changes() > 0


def delete_with(connection: apsw.Connection, text: bytes) -> None:
    """Delete the sessions whose state contains a text."""
    connection.execute("DELETE FROM sessions WHERE instr(state, ?)", (text,))


def prune(connection: apsw.Connection, before: int, owner: str, max_count: int) -> None:
    """Delete sessions last used before `before`, and the oldest of more than `max_count` of an owner."""
    connection.execute("DELETE FROM sessions WHERE used_at < ?", (before,))
    connection.execute(
        "DELETE FROM sessions WHERE id IN"
        " (SELECT id FROM sessions WHERE owner = ? ORDER BY used_at DESC LIMIT -1 OFFSET ?)",
        (owner, max_count),
    )
