"""A pool of read-only connections, opened on demand and reused."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from dittybag.domain.errors import DittybagError, StorageBusy, StorageClosed, StorageError
from dittybag.storage.postgres.postgres_connections import (
    DRIVER_ERRORS,
    ConnectionLost,
    PostgresAddress,
    PostgresConnection,
    connect,
)
from dittybag.storage.postgres.postgres_queries import PostgresTables

#: Per pool: a server has to serve many processes.
MAX_CONNECTIONS: Final = 8

CLOSING_SECONDS: Final = 1.0

#: How long a read waits for a connection that others use, and for a new one. Together with the retries, a
#: caller gets an answer within 10 seconds.
WAIT_SECONDS: Final = 5.0
OPEN_SECONDS: Final = 3.0
#: The same after a failure: an attempt from before the network was back would only delay others.
RETRY_OPEN_SECONDS: Final = 0.9


class ConnectionPool:
    """A pool that hands out the most recently used connection first."""

    def __init__(self, where: PostgresAddress) -> None:
        self._where = where
        self._free: list[PostgresTables] = []
        self._in_use: set[PostgresTables] = set()
        self._opening = 0
        self._closing: set[asyncio.Task[None]] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False
        #: Whether the server was unreachable when it was last tried.
        self._is_down = False

    @property
    def is_exhausted(self) -> bool:
        """Whether the next caller would have to wait for another one."""
        return not self._free and len(self._in_use) + self._opening >= MAX_CONNECTIONS

    @asynccontextmanager
    async def acquire(self, viewer: str | None) -> AsyncIterator[PostgresTables]:
        """Hold a connection until the end of the block, preferably one with this viewer.

        Raises `ConnectionLost` if none can be opened.
        """
        tables = await self._acquire(viewer)
        self._in_use.add(tables)
        try:
            yield tables
        except BaseException as error:
            # Only after an error of the domain does the connection certainly wait for nothing.
            domain_error = isinstance(error, DittybagError) and not isinstance(error, StorageError)
            self._release(tables, in_doubt=not domain_error)
            raise
        self._release(tables)

    async def _acquire(self, viewer: str | None) -> PostgresTables:
        while True:
            if self._closed:
                raise StorageClosed(self._where.display_url)
            while self._free:
                tables = self._free.pop(self._best_match(viewer))
                if not tables.connection.is_closed():
                    return tables
            if len(self._in_use) + self._opening < MAX_CONNECTIONS:
                return await self._open()
            await self._wait()

    def _best_match(self, viewer: str | None) -> int:
        """Return the index of a free connection: the last one of this viewer, or else the last one."""
        if viewer is not None:
            for index in range(len(self._free) - 1, -1, -1):
                if self._free[index].row_security.is_set_to(viewer):
                    return index
        return -1

    async def _open(self) -> PostgresTables:
        self._opening += 1
        seconds = RETRY_OPEN_SECONDS if self._is_down else OPEN_SECONDS
        try:
            connection = await connect(self._where, writable=False, seconds=seconds)
            self._is_down = False
            return PostgresTables(connection)
        except ConnectionLost:
            self._is_down = True
            raise
        finally:
            self._opening -= 1
            self._wake()

    async def _wait(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            done, _ = await asyncio.wait((turn,), timeout=WAIT_SECONDS)
            if not done:
                raise TimeoutError  # noqa: TRY301  # handled like a cancellation
        except BaseException as error:
            if turn in self._waiting:
                self._waiting.remove(turn)
            else:
                # It was our turn: pass it on.
                self._wake()
            if isinstance(error, TimeoutError):
                raise (
                    ConnectionLost("no connection could be opened")
                    if self._is_down
                    else StorageBusy(self._where.display_url)
                ) from None
            raise

    def _release(self, tables: PostgresTables, *, in_doubt: bool = False) -> None:
        connection = tables.connection
        if self._closed or connection.is_closed():
            connection.terminate()
        elif in_doubt or connection.is_in_transaction():
            # It counts as in use until its query has ended, so that the maximum holds on the server too.
            closing = asyncio.get_running_loop().create_task(self._discard(tables))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            return
        else:
            self._free.append(tables)
        self._in_use.discard(tables)
        self._wake()

    async def _discard(self, tables: PostgresTables) -> None:
        """Cancel what a connection is doing, and close it."""
        try:
            await tables.connection.close(timeout=CLOSING_SECONDS)
        except (TimeoutError, *DRIVER_ERRORS):
            tables.connection.terminate()
        finally:
            self._in_use.discard(tables)
            self._wake()

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def connections_in_use(self) -> list[PostgresConnection]:
        return [tables.connection for tables in self._in_use]

    def discard_free(self) -> None:
        """Close the connections that are not in use, because one in use does not reach the server."""
        self._is_down = True
        free, self._free = self._free, []
        for tables in free:
            tables.connection.terminate()

    async def close(self) -> None:
        """Close all connections, including those in use."""
        self._closed = True
        for tables in tuple(self._in_use):
            tables.connection.terminate()
        free, self._free = self._free, []
        closing = [tables.connection.close(timeout=CLOSING_SECONDS) for tables in free]
        await asyncio.gather(*closing, *self._closing, return_exceptions=True)
        while self._waiting:
            self._wake()
