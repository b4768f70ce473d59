"""Merges new entries into the indexes of texts, beside the writes.

PostgreSQL first adds the entries of a row to a list of the index. The write that fills this list would merge
all of it while others wait for the lock, so a server merges it before, on a connection of its own.
"""

from __future__ import annotations

import asyncio
from typing import Final

from dittybag.domain.errors import StorageError
from dittybag.storage.postgres.postgres_connections import (
    DRIVER_ERRORS,
    LOCK_CLASS,
    ConnectionLost,
    PostgresAddress,
    PostgresConnection,
    connect,
    lock_key,
)

#: The lists are merged after this many changes, because a search reads them from the beginning to the end,
MERGED_CHANGES: Final = 500
#: and after this many seconds if there are fewer. Without changes, the connection is closed after that time.
PAUSE_SECONDS: Final = 5.0

#: One server at a time.
_MERGE: Final = """
WITH turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock($1, $2) AS is_ours)
SELECT gin_clean_pending_list(indexes.oid)
FROM turn, pg_class AS indexes
JOIN pg_am ON pg_am.oid = relam JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE is_ours AND amname = 'gin' AND nspname = current_schema()
"""


class IndexUpkeep:
    """Counts changes, and merges the lists of the indexes in the background."""

    def __init__(self, where: PostgresAddress, schema: str) -> None:
        self._where = where
        self._lock = LOCK_CLASS, lock_key(f"{schema} indexes")
        self._changes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._connection: PostgresConnection | None = None

    def note_changes(self, count: int) -> None:
        """Note that this process has made changes."""
        self._changes += count
        if self._task is not None:
            return
        if self._changes >= MERGED_CHANGES:
            self._start()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._start)

    def _start(self) -> None:
        self._cancel_timer()
        if self._changes == 0:
            # Connections are scarce.
            self._drop_connection()
        else:
            self._task = asyncio.get_running_loop().create_task(self._merge())

    async def _merge(self) -> None:
        self._changes = 0
        try:
            if self._connection is None or self._connection.is_closed():
                self._connection = await connect(self._where, writable=True)
            await self._connection.fetch(_MERGE, *self._lock)
        except (ConnectionLost, StorageError, TimeoutError, *DRIVER_ERRORS):
            # Then the writes merge the lists, or the server itself does.
            self._drop_connection()
        finally:
            self._task = None
        self.note_changes(0)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def close(self) -> None:
        self._cancel_timer()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._cancel_timer()
        self._drop_connection()
