"""A connection that takes one of a pool for each query."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn, Protocol, TypeVar

from dittybag.domain.errors import StorageUnreachable
from dittybag.storage.postgres.checked_transaction import LockNeeded
from dittybag.storage.postgres.postgres_queries import PostgresTables

T = TypeVar("T")

#: Longer than requests are retried. A connection may be dead without an error.
READ_SECONDS: Final = 6.0


class RunOnConnection(Protocol):
    """Runs queries on a connection of a pool."""

    async def __call__(self, work: Callable[[PostgresTables], Awaitable[T]]) -> T: ...


class PooledConnection:
    """The part of `PostgresConnection` that reads. Nothing is held between two queries."""

    def __init__(self, run: RunOnConnection, where: str) -> None:
        self._run = run
        self._where = where

    async def fetch(self, query: str, *values: Any) -> Any:
        return await self._read(lambda tables: tables.connection.fetch(query, *values))

    async def fetchrow(self, query: str, *values: Any) -> Any:
        return await self._read(lambda tables: tables.connection.fetchrow(query, *values))

    async def fetchval(self, query: str, *values: Any) -> Any:
        return await self._read(lambda tables: tables.connection.fetchval(query, *values))

    async def execute(self, query: str, *values: Any) -> NoReturn:
        raise LockNeeded

    async def executemany(self, query: str, values: Any) -> NoReturn:
        raise LockNeeded

    async def _read(self, work: Callable[[PostgresTables], Awaitable[T]]) -> T:
        # A timeout needs a task. A handler starts without one, and continues in one after it has suspended.
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(READ_SECONDS):
                return await self._run(work)
        except TimeoutError as error:
            raise StorageUnreachable(self._where, "there was no response to a query") from error
