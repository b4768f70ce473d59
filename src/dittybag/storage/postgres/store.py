"""A workspace in a schema of a PostgreSQL database."""

from __future__ import annotations

import time
from asyncio import get_running_loop
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Self, TypeVar

from dittybag.domain.changes import ChangeNotification, Kind
from dittybag.domain.errors import StorageClosed, StorageFailed
from dittybag.domain.ports import Transaction, Work
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.storage.postgres import trigram_indexes
from dittybag.storage.postgres.change_feed import ChangeFeed
from dittybag.storage.postgres.change_table import newest_seq
from dittybag.storage.postgres.connection_pool import ConnectionPool
from dittybag.storage.postgres.connections import (
    DRIVER_ERRORS,
    Connection,
    PostgresAddress,
    parse_address,
    translate_error,
)
from dittybag.storage.postgres.migrations import is_current, migrate
from dittybag.storage.postgres.retry import retry_until_connected
from dittybag.storage.postgres.transaction import ConnectedTables, PostgresTransaction
from dittybag.storage.postgres.writer import WriteJob, Writer

T = TypeVar("T")


def now_microseconds() -> int:
    return time.time_ns() // 1000


class PostgresStore:
    """See `dittybag.domain.ports.Store`.

    Reads have a few connections, writes one of their own, and so has the news.
    """

    def __init__(self, where: PostgresAddress, clock: Callable[[], int] = now_microseconds) -> None:
        """Use `open`, which also sees to the schema."""
        #: For people: there is no password in it.
        self.path = where.display_url
        self._where = where
        self._clock = clock
        self._pool = ConnectionPool(where)
        #: For users: what the operator's connections have prepared must not serve them.
        self._users_pool = ConnectionPool(where)
        self._writer: Writer
        self._feed: ChangeFeed
        self._closed = False

    @classmethod
    async def open(cls, url: str, clock: Callable[[], int] = now_microseconds) -> Self:
        """Open a workspace; it is made if it is not there, and brought to the newest schema if it is old."""
        store = cls(parse_address(url), clock)
        try:
            await retry_until_connected(store._prepare, store.path)
            if await store.read(_default_project, single=True) is None:
                await store.write(_create_default_project, actor="dittybag")
        except BaseException:
            await store._pool.close()
            raise
        return store

    async def _prepare(self) -> None:
        async def look(tables: ConnectedTables) -> tuple[str, bool]:
            connection = tables.connection
            schema = self._where.schema or await _first_schema(connection, self._where)
            ready = await is_current(connection, self._where) and not await trigram_indexes.are_missing(
                connection
            )
            return schema, ready

        async def ask(tables: ConnectedTables) -> int:
            return await newest_seq(tables.connection)

        schema, ready = await self._on_connection(look)
        if not ready:
            await migrate(self._where, schema)
        seq = await self._on_connection(ask)
        self._feed = ChangeFeed(self._where, schema, seq)
        self._writer = Writer(self._where, schema, self._clock, self._feed.record_own_change)

    async def check(self) -> None:
        async def look(tables: ConnectedTables) -> None:
            if not await is_current(tables.connection, self._where):
                raise StorageFailed(self.path, "the tables are not there any more")
            await tables.projects.all()

        self._require_open()
        await retry_until_connected(lambda: self._on_connection(look), self.path)

    async def warnings(self) -> list[str]:
        async def look(tables: ConnectedTables) -> str | None:
            name: str | None = await tables.connection.fetchval(
                "SELECT rolname FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)"
            )
            return name

        role = await retry_until_connected(lambda: self._on_connection(look), self.path)
        if role is None:
            return []
        kept_apart = "what keeps users apart is Dittybag alone"
        what_to_do = "Use a role that is neither SUPERUSER nor BYPASSRLS"
        return [f"The role '{role}' skips PostgreSQL's row-level security, so {kept_apart}. {what_to_do}."]

    def _require_open(self) -> None:
        if self._closed:
            raise StorageClosed(self.path)

    # Reading

    async def read(
        self, work: Work[T], *, slow: bool = False, single: bool = False, viewer: str | None = None
    ) -> T:
        self._require_open()

        async def at_once(tables: ConnectedTables) -> T:
            return await work(PostgresTransaction(tables, self._clock()))

        async def on_one_view(tables: ConnectedTables) -> T:
            connection = tables.connection
            await connection.execute("BEGIN")
            try:
                return await at_once(tables)
            finally:
                if not connection.is_closed():
                    await connection.execute("COMMIT")

        run = at_once if single else on_one_view
        return await retry_until_connected(lambda: self._on_connection(run, viewer), self.path)

    async def _on_connection(self, work: Callable[[ConnectedTables], Any], viewer: str | None = None) -> Any:
        """Run something on a connection for reading; errors of the driver become errors of the store."""
        pool = self._pool if viewer is None else self._users_pool
        async with pool.acquire(viewer) as tables:
            try:
                await tables.row_security.begin(viewer)
                return await work(tables)
            except DRIVER_ERRORS as error:
                raise translate_error(error, tables.connection, self.path) from error

    # Writing

    async def write(self, work: Work[T], *, actor: str, viewer: str | None = None) -> T:
        self._require_open()
        loop = get_running_loop()
        job = WriteJob(work=work, actor=actor, viewer=viewer, future=loop.create_future(), since=loop.time())
        self._writer.submit(job)
        try:
            result: T = await job.future
            return result
        finally:
            # If nobody waits any more and it has not begun, it need not.
            job.abandoned = True

    # News

    def stamp(self, kind: Kind, project: int | None) -> Hashable:
        """Nothing: only the server knows at once what others have changed, and asking it takes time."""
        self._require_open()
        return None

    def subscribe(self, listener: Callable[[Sequence[ChangeNotification]], Any]) -> None:
        self._feed.subscribe(listener)

    async def close(self) -> None:
        """Finish what is being written, and let go of the server."""
        if self._closed:
            return
        self._closed = True
        await self._feed.close()
        await self._writer.close()
        await self._pool.close()
        await self._users_pool.close()


async def _first_schema(connection: Connection, where: PostgresAddress) -> str:
    schema: str | None = await connection.fetchval("SELECT current_schema()")
    if schema is None:
        raise StorageFailed(where.display_url, "the search path has no schema; name one with ?schema=NAME")
    return schema


async def _default_project(transaction: Transaction) -> Project | None:
    return await transaction.projects.by_name(DEFAULT_PROJECT)


async def _create_default_project(transaction: Transaction) -> None:
    if await _default_project(transaction) is None:
        now = transaction.now
        project = Project(id=0, name=DEFAULT_PROJECT, created_at=now, updated_at=now)
        await transaction.write("create", None, project)
