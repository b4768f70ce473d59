"""Connections of the driver: one to a server itself, and one through a pooler in transaction mode.

A pooler in transaction mode gives each transaction to any of its connections to the server. So whatever is
set outlives no transaction, and no query relies on a statement that was prepared in another one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

import asyncpg  # type: ignore[import-untyped]  # it has no types

if TYPE_CHECKING:
    from dittybag.storage.postgres.postgres_connections import PostgresConnection

T = TypeVar("T")

VIEWER_SETTING: Final = "dittybag.viewer"

#: The maximum number of statements whose types are kept.
_MAX_STATEMENTS: Final = 200


class _WatchedConnection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg has no types
    """A connection that knows how long it has been waiting for the server."""

    __slots__ = ("waiting_since",)

    #: When the query that is running was sent, on the monotonic clock; None if none is running.
    waiting_since: float | None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.waiting_since = None

    async def _watched(self, query: Awaitable[T]) -> T:
        self.waiting_since = monotonic()
        try:
            return await query
        finally:
            self.waiting_since = None

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:  # noqa: ASYNC109  # asyncpg's signature
        status: str = await self._watched(super().execute(query, *args, timeout=timeout))
        return status

    async def executemany(self, command: str, args: Iterable[Sequence[Any]], **options: Any) -> None:
        await self._watched(super().executemany(command, args, **options))

    async def fetch(self, query: str, *args: Any, **options: Any) -> list[Any]:
        rows: list[Any] = await self._watched(super().fetch(query, *args, **options))
        return rows

    async def fetchrow(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._watched(super().fetchrow(query, *args, **options))

    async def fetchval(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._watched(super().fetchval(query, *args, **options))


class DirectConnection(_WatchedConnection):
    """A connection whose settings and prepared statements last."""

    __slots__ = ()

    async def begin(self, *statements: str) -> None:
        """Begin a transaction and run statements without parameters in it, in one round trip."""
        await self.execute("; ".join(("BEGIN", *statements)))

    async def set_viewer(self, setting: str) -> None:
        """Set the viewer of all following transactions."""
        await self.fetchval(f"SELECT set_config('{VIEWER_SETTING}', $1, false)", setting)

    async def is_running_on(self, other: PostgresConnection) -> bool:
        """Whether the server runs the query that this connection waits for. `other`: asks the server."""
        sql = "SELECT true FROM pg_stat_activity WHERE pid = $1 AND state = 'active'"
        return bool(await other.fetchval(sql, self.get_server_pid()))


class PooledConnection(_WatchedConnection):
    """A connection through a pooler. Every transaction begins with all settings.

    A query outside of a transaction gets one of its own. The driver keeps what it knows about the types of
    statements, but no statement has a name, so it is sent to the server each time.
    """

    __slots__ = ("_begin", "_settings", "_statements")

    def configure(self, begin: str, settings: Mapping[str, str]) -> None:
        """`begin`: the statement that begins a transaction. `settings`: those of each transaction."""
        self._begin = begin
        self._statements: dict[str, Any] = {}
        self._settings = {VIEWER_SETTING: "", **settings}

    async def begin(self, *statements: str) -> None:
        """See `DirectConnection.begin`."""
        calls = (
            f"set_config({literal(name)}, {literal(value)}, true)" for name, value in self._settings.items()
        )
        await super().execute("; ".join((self._begin, f"SELECT {', '.join(calls)}", *statements)))

    async def set_viewer(self, setting: str) -> None:
        """See `DirectConnection.set_viewer`."""
        self._settings[VIEWER_SETTING] = setting

    async def is_running_on(self, other: PostgresConnection) -> bool:
        """Whether the server may run the query: only the pooler knows which of its connections does.

        In a transaction, the pooler has given a connection to this one. Before, both wait for one.
        """
        return self.is_in_transaction() or bool(await other.fetchval("SELECT true"))

    @asynccontextmanager
    async def _in_transaction(self) -> AsyncIterator[None]:
        if self.is_in_transaction():
            yield
            return
        await self.begin()
        try:
            yield
        except asyncpg.PostgresError:
            with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                await super().execute("ROLLBACK")
            raise
        await super().execute("COMMIT")

    async def _statement(self, query: str) -> Any:
        statement = self._statements.get(query)
        if statement is None:
            statement = await self._watched(self.prepare(query, name=""))
            if len(self._statements) == _MAX_STATEMENTS:
                del self._statements[next(iter(self._statements))]
            self._statements[query] = statement
        return statement

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:  # noqa: ASYNC109  # asyncpg's signature
        async with self._in_transaction():
            if not args:
                return await super().execute(query, timeout=timeout)
            statement = await self._statement(query)
            await self._watched(statement.fetch(*args, timeout=timeout))
            status: str = statement.get_statusmsg()
            return status

    async def executemany(self, command: str, args: Iterable[Sequence[Any]], **options: Any) -> None:
        async with self._in_transaction():
            await super().executemany(command, args, **options)

    async def fetch(self, query: str, *args: Any, **options: Any) -> list[Any]:
        async with self._in_transaction():
            rows: list[Any] = await self._watched((await self._statement(query)).fetch(*args, **options))
            return rows

    async def fetchrow(self, query: str, *args: Any, **options: Any) -> Any:
        async with self._in_transaction():
            return await self._watched((await self._statement(query)).fetchrow(*args, **options))

    async def fetchval(self, query: str, *args: Any, **options: Any) -> Any:
        async with self._in_transaction():
            return await self._watched((await self._statement(query)).fetchval(*args, **options))


def literal(text: str) -> str:
    """Quote a text as an SQL string, whatever `standard_conforming_strings` is."""
    escaped = text.replace("'", "''").replace("\\", "\\\\")
    return f"E'{escaped}'" if "\\" in text else f"'{escaped}'"
