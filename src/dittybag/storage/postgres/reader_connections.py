"""Connections for reading from one server: a pool for the operator, and one for users."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dittybag.domain.errors import DittybagError
from dittybag.storage.postgres.connection_monitor import ConnectionMonitor
from dittybag.storage.postgres.connection_pool import ConnectionPool
from dittybag.storage.postgres.postgres_connections import (
    DRIVER_ERRORS,
    PostgresAddress,
    PostgresConnection,
    translate_error,
)
from dittybag.storage.postgres.postgres_queries import PostgresTables

T = TypeVar("T")


class ReaderConnections:
    """Runs reads on pooled connections."""

    def __init__(self, where: PostgresAddress) -> None:
        self._where = where
        self._pool = ConnectionPool(where)
        #: Users need other connections: statements planned for the operator skip the policies.
        self._users_pool = ConnectionPool(where)
        self._monitor = ConnectionMonitor(where, self._in_use, self._discard_free)

    def is_exhausted(self, viewer: str | None) -> bool:
        """Whether a read would have to wait for another one."""
        return self._pool_of(viewer).is_exhausted

    def _pool_of(self, viewer: str | None) -> ConnectionPool:
        return self._pool if viewer is None else self._users_pool

    async def run(self, work: Callable[[PostgresTables], Awaitable[T]], viewer: str | None = None) -> T:
        """Run `work` on a connection. Driver errors become storage errors or `ConnectionLost`."""
        # The driver needs a task. A handler starts without one, and continues in one after it has suspended.
        await asyncio.sleep(0)
        async with self._pool_of(viewer).acquire(viewer) as tables:
            self._monitor.start()
            try:
                await tables.row_security.set_for_session(viewer)
                return await work(tables)
            except DRIVER_ERRORS as error:
                raise translate_error(error, tables.connection, self._where.display_url) from error

    def _in_use(self) -> list[PostgresConnection]:
        return [*self._pool.connections_in_use(), *self._users_pool.connections_in_use()]

    def _discard_free(self) -> None:
        self._pool.discard_free()
        self._users_pool.discard_free()

    async def close(self) -> None:
        await asyncio.gather(self._monitor.close(), self._pool.close(), self._users_pool.close())


async def run_in_snapshot(
    tables: PostgresTables, work: Callable[[PostgresTables], Awaitable[T]], *statements: str
) -> T:
    """Run `work` in a read transaction, which begins with `statements`."""
    connection = tables.connection
    await connection.begin(*statements)
    try:
        result = await work(tables)
    except DittybagError:
        await connection.execute("COMMIT")
        raise
    # After any other error, the pool closes the connection.
    await connection.execute("COMMIT")
    return result
