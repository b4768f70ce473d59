"""HTTP sessions. They are not user data, and not in the change log."""

from __future__ import annotations

from dittybag.domain.ports import StoredSession
from dittybag.storage.sql.sql_driver import MAX_INTEGER, SqlDriver


class SessionTable:
    """Sessions of the HTTP server, which are not in the change log."""

    def __init__(self, driver: SqlDriver) -> None:
        self._driver = driver

    async def get(self, id: str) -> StoredSession | None:
        row = await self._driver.row("SELECT state, used_at, owner FROM sessions WHERE id = $1", id)
        return None if row is None else StoredSession(*row)

    async def save(self, id: str, owner: str, state: bytes, used_at: int) -> None:
        """Insert or replace a session."""
        await self._driver.run(
            "INSERT INTO sessions (id, owner, state, used_at) VALUES ($1, $2, $3, $4)"
            " ON CONFLICT (id) DO UPDATE SET state = excluded.state, used_at = excluded.used_at",
            id,
            owner,
            state,
            used_at,
        )

    async def delete(self, id: str) -> bool:
        """Delete a session. Returns whether it existed."""
        return await self._driver.run("DELETE FROM sessions WHERE id = $1", id) > 0

    async def delete_with(self, text: bytes) -> None:
        """Delete the sessions whose state contains a text."""
        rows = await self._driver.rows("SELECT id, state FROM sessions")
        await self._driver.run_each(
            "DELETE FROM sessions WHERE id = $1", [row[:1] for row in rows if text in row[1]]
        )

    async def prune(self, before: int, owner: str, max_count: int) -> None:
        """Delete sessions last used before `before`, and the oldest of more than `max_count` of an owner."""
        await self._driver.run("DELETE FROM sessions WHERE used_at < $1", before)
        await self._driver.run(
            "DELETE FROM sessions WHERE id IN"
            " (SELECT id FROM sessions WHERE owner = $1 ORDER BY used_at DESC LIMIT $2 OFFSET $3)",
            owner,
            MAX_INTEGER,
            max_count,
        )
