"""A connection that takes one of a pool for each query."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, Protocol, TypeVar

from dittybag.storage.postgres.checked_transaction import LockNeeded
from dittybag.storage.postgres.postgres_queries import PostgresTables

T = TypeVar("T")


class RunOnConnection(Protocol):
    """Runs queries on a connection of a pool."""

    async def __call__(self, work: Callable[[PostgresTables], Awaitable[T]]) -> T: ...


class BorrowedConnection:
    """The part of `PostgresConnection` that reads. Nothing is held between two queries."""

    def __init__(self, run: RunOnConnection) -> None:
        self._run = run

    async def fetch(self, query: str, *values: Any) -> Any:
        return await self._run(lambda tables: tables.connection.fetch(query, *values))

    async def fetchrow(self, query: str, *values: Any) -> Any:
        return await self._run(lambda tables: tables.connection.fetchrow(query, *values))

    async def fetchval(self, query: str, *values: Any) -> Any:
        return await self._run(lambda tables: tables.connection.fetchval(query, *values))

    async def execute(self, query: str, *values: Any) -> NoReturn:
        raise LockNeeded

    async def executemany(self, query: str, values: Any) -> NoReturn:
        raise LockNeeded
