"""Notifications of changes made by any process.

Each commit sends a PostgreSQL notification with the `seq` of its last change. The feed then reads the change
log from the last `seq` that it has read. So it misses nothing while it is disconnected, and reports nothing
twice. Through a pooler in transaction mode there are no notifications: then it reads the log at short
intervals, unless the address of the server itself is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from dittybag.domain.changes import ChangeNotification
from dittybag.domain.errors import StorageError
from dittybag.storage.postgres.postgres_connections import (
    DRIVER_ERRORS,
    ConnectionLost,
    PostgresAddress,
    connect,
    notification_channel,
)
from dittybag.storage.postgres.postgres_queries import PostgresTables

#: Notifications are delayed by this, so that several are sent together.
NOTIFY_DELAY_SECONDS: Final = 0.01

#: How often to read the log without a notification: a dead connection may not report an error.
INTERVAL_SECONDS: Final = 5.0

#: How long reading some changes may take, before the connection counts as dead.
READING_SECONDS: Final = 5.0

#: The same where there are no notifications.
POLLING_SECONDS: Final = 0.5

#: At most this many changes are read at once.
MAX_CHANGES_PER_READ: Final = 1000

_LONGEST_PAUSE: Final = 1.0

Listener: TypeAlias = Callable[[Sequence[ChangeNotification]], Any]


class ChangeFeed:
    """Follows the change log on a separate connection, from the first subscription on."""

    def __init__(self, where: PostgresAddress, schema: str, seq: int) -> None:
        """`seq`: the last change that listeners are not notified of."""
        self._where = where.direct or where
        self._interval = POLLING_SECONDS if self._where.is_pooled else INTERVAL_SECONDS
        self._channel = notification_channel(schema)
        self._seq = seq
        self._own_seq = seq
        #: Each with the last change before it subscribed.
        self._listeners: list[tuple[int, Listener]] = []
        self._task: asyncio.Task[None] | None = None
        self._wake_event = asyncio.Event()

    def record_own_change(self, seq: int) -> None:
        """Record the last change of this process. Later subscribers are not notified of it."""
        self._own_seq = max(self._own_seq, seq)
        if self._task is None:
            self._seq = self._own_seq
        elif self._where.is_pooled:
            self._wake()

    def subscribe(self, listener: Listener) -> None:
        self._listeners.append((max(self._seq, self._own_seq), listener))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._follow())

    async def close(self) -> None:
        self._listeners.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self) -> None:
        """Listen, and reconnect whenever the connection is lost."""
        pause = 0.0
        while True:
            try:
                tables = PostgresTables(await connect(self._where, writable=False))
                pause = 0.0
                try:
                    await self._listen(tables)
                finally:
                    tables.connection.terminate()
            except (ConnectionLost, StorageError, *DRIVER_ERRORS):
                # Requests fail with the same error and report it.
                await asyncio.sleep(pause)
                pause = min(2 * pause + 0.02, _LONGEST_PAUSE)

    async def _listen(self, tables: PostgresTables) -> None:
        tables.connection.add_termination_listener(self._wake)
        if not self._where.is_pooled:
            await tables.connection.add_listener(self._channel, self._wake)
        while True:
            self._wake_event.clear()
            while await self._read_changes(tables):
                pass
            try:
                async with asyncio.timeout(self._interval):
                    await self._wake_event.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(NOTIFY_DELAY_SECONDS)

    def _wake(self, *_: object) -> None:
        self._wake_event.set()

    async def _read_changes(self, tables: PostgresTables) -> bool:
        """Notify listeners of new changes. Returns whether there may be more."""
        async with asyncio.timeout(READING_SECONDS):
            found = await tables.changes.notifications_since(self._seq, MAX_CHANGES_PER_READ)
            if not found:
                if await tables.changes.newest_seq() < self._seq:
                    await self._reset(tables)
                return False
        self._seq = found[-1][0]
        for since, listener in self._listeners:
            if notifications := [item for seq, item in found if seq > since]:
                listener(notifications)
        return len(found) == MAX_CHANGES_PER_READ

    async def _reset(self, tables: PostgresTables) -> None:
        """Start over after a restore: the change log is another one, and everything counts as changed."""
        self._seq = self._own_seq = await tables.changes.newest_seq()
        everything = await tables.changes.notifications_of_everything()
        self._listeners = [(self._seq, listener) for _, listener in self._listeners]
        for _, listener in self._listeners:
            listener(everything)
