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

#: The lists are merged whenever the log has grown by this many changes, by the server that notices it first.
#: A search reads the lists from the beginning to the end. Merging many entries takes hardly longer than few.
MERGED_CHANGES: Final = 1500
#: They are merged after this many seconds if there are fewer. Without changes, the connection is then closed.
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

    def __init__(self, where: PostgresAddress, schema: str, seq: int) -> None:
        """`seq`: the last change before those of this process."""
        self._where = where
        self._lock = LOCK_CLASS, lock_key(f"{schema} indexes")
        #: The last change of this process, and the one up to which the lists were merged.
        self._seq = self._merged_seq = seq
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._connection: PostgresConnection | None = None

    def note_change(self, seq: int) -> None:
        """Note the last change that this process has made."""
        self._seq = max(self._seq, seq)
        if self._task is None:
            self._plan()

    def _plan(self) -> None:
        # All servers count from the same change, so they do not merge in turns.
        if self._seq // MERGED_CHANGES > self._merged_seq // MERGED_CHANGES:
            self._start()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._start)

    def _start(self) -> None:
        self._cancel_timer()
        if self._seq == self._merged_seq:
            # Connections are scarce.
            self._drop_connection()
        else:
            self._task = asyncio.get_running_loop().create_task(self._merge())

    async def _merge(self) -> None:
        self._merged_seq = self._seq
        try:
            if self._connection is None or self._connection.is_closed():
                self._connection = await connect(self._where, writable=True)
            await self._connection.fetch(_MERGE, *self._lock)
        except (ConnectionLost, StorageError, TimeoutError, *DRIVER_ERRORS):
            # Then the writes merge the lists, or the server itself does.
            self._drop_connection()
        finally:
            self._task = None
        self._plan()

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
