"""The PostgreSQL store: a workspace in a schema of a database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any, Self, TypeVar

from dittybag.domain.changes import ChangeNotification, Interface
from dittybag.domain.entities import Kind
from dittybag.domain.errors import StorageClosed, StorageFailed, WorkspaceNotFound
from dittybag.domain.ports import ReplicaStatus, Transaction, Work
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.storage.clock import now_microseconds
from dittybag.storage.postgres import trigram_indexes
from dittybag.storage.postgres.migrations.postgres_migrations import is_current, is_missing, migrate
from dittybag.storage.postgres.postgres_change_feed import ChangeFeed
from dittybag.storage.postgres.postgres_connections import (
    PostgresAddress,
    PostgresConnection,
    parse_address,
    parse_replica,
    require_settings,
)
from dittybag.storage.postgres.postgres_queries import PostgresTables
from dittybag.storage.postgres.postgres_request_buckets import PostgresRequestBuckets
from dittybag.storage.postgres.postgres_scrubbing import scrub
from dittybag.storage.postgres.postgres_writer import StoreWriter, WriteJob
from dittybag.storage.postgres.read_replicas import LogEnds, NoReplica, ReadReplicas, read_log_ends
from dittybag.storage.postgres.reader_connections import ReaderConnections, run_in_snapshot
from dittybag.storage.postgres.retry import retry_until_connected
from dittybag.storage.sql.default_project import create_default_project
from dittybag.storage.sql.sql_transaction import SqlTransaction

T = TypeVar("T")


class PostgresStore:
    """See `dittybag.domain.ports.Store`.

    Reads use two pools of connections. The writer and the change feed have one connection each.
    """

    writable = True

    def __init__(
        self,
        where: PostgresAddress,
        clock: Callable[[], int] = now_microseconds,
        replicas: Sequence[PostgresAddress] = (),
    ) -> None:
        """Use `open` instead, which also prepares the schema."""
        #: For messages. Contains no password.
        self.path = where.display_url
        self._where = where
        self._clock = clock
        self._readers = ReaderConnections(where)
        self._replicas = ReadReplicas(replicas, self._read_log_ends)
        self.request_buckets = PostgresRequestBuckets(where)
        self._writer: StoreWriter
        self._feed: ChangeFeed
        self._closed = False

    @classmethod
    async def open(
        cls,
        url: str,
        clock: Callable[[], int] = now_microseconds,
        *,
        create: bool = True,
        replicas: Sequence[str] = (),
    ) -> Self:
        """Open a workspace, and migrate an older schema.

        A missing one is created, or raises `WorkspaceNotFound` without `create`. `replicas`: the URLs of read
        replicas, in the same schema.
        """
        where = parse_address(url)
        store = cls(where, clock, [parse_replica(replica, where) for replica in replicas])
        try:
            await retry_until_connected(lambda: store._prepare(create=create), store.path)
            if await store.read(_default_project, single=True) is None:
                await store.write(create_default_project, actor="dittybag")
        except BaseException:
            await store._readers.close()
            raise
        if replicas:
            store._replicas.start(await store._read_log_ends())
        return store

    async def _prepare(self, *, create: bool) -> None:
        async def inspect(tables: PostgresTables) -> tuple[str, bool]:
            connection = tables.connection
            await require_settings(connection, self._where)
            if not create and await is_missing(connection, self._where):
                raise WorkspaceNotFound(self.path)
            schema = self._where.schema or await _first_schema(connection, self._where)
            ready = await is_current(connection, self._where) and not await trigram_indexes.are_missing(
                connection
            )
            return schema, ready

        async def read_seq(tables: PostgresTables) -> int:
            return await tables.changes.newest_seq()

        schema, ready = await self._readers.run(inspect)
        if not ready:
            await migrate(self._where, schema)
        seq = await self._readers.run(read_seq)
        self._feed = ChangeFeed(self._where, schema, seq)
        self._writer = StoreWriter(self._where, schema, self._clock, self._feed.record_own_change)

    async def check(self) -> None:
        async def read_tables(tables: PostgresTables) -> None:
            if not await is_current(tables.connection, self._where):
                raise StorageFailed(self.path, "the tables no longer exist")
            await tables.projects.all()

        self._require_open()
        await retry_until_connected(lambda: self._readers.run(read_tables), self.path)

    async def warnings(self) -> list[str]:
        async def find_role(tables: PostgresTables) -> str | None:
            name: str | None = await tables.connection.fetchval(
                "SELECT rolname FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)"
            )
            return name

        role = await retry_until_connected(lambda: self._readers.run(find_role), self.path)
        if role is None:
            return []
        consequence = "only Dittybag itself separates users"
        advice = "Use a role without SUPERUSER and BYPASSRLS"
        return [f"The role '{role}' bypasses PostgreSQL's row-level security, so {consequence}. {advice}."]

    def _require_open(self) -> None:
        if self._closed:
            raise StorageClosed(self.path)

    # Reading

    async def read(
        self,
        work: Work[T],
        *,
        slow: bool = False,
        single: bool = False,
        replica: bool = False,
        viewer: str | None = None,
    ) -> T:
        self._require_open()

        async def run_once(tables: PostgresTables) -> T:
            return await work(SqlTransaction(tables, self._clock()))

        async def run(tables: PostgresTables) -> T:
            return await (run_once(tables) if single else run_in_snapshot(tables, run_once))

        if replica:
            with suppress(NoReplica):
                return await self._replicas.read(run_once, viewer)
        return await retry_until_connected(lambda: self._readers.run(run, viewer), self.path)

    async def _read_log_ends(self) -> LogEnds:
        return await retry_until_connected(lambda: self._readers.run(read_log_ends), self.path)

    def replicas(self) -> list[ReplicaStatus]:
        return self._replicas.statuses()

    # Writing

    async def write(
        self, work: Work[T], *, actor: str, viewer: str | None = None, interface: Interface | None = None
    ) -> T:
        self._require_open()
        loop = asyncio.get_running_loop()
        job = WriteJob(
            work=work,
            actor=actor,
            viewer=viewer,
            interface=interface,
            future=loop.create_future(),
            since=loop.time(),
        )
        self._writer.submit(job)
        try:
            result: T = await job.future
            return result
        finally:
            # If the caller was cancelled, the writer skips a job that has not started.
            job.abandoned = True

    async def scrub(self) -> None:
        self._require_open()
        await retry_until_connected(lambda: scrub(self._where), self.path)

    # Notifications

    def stamp(self, kind: Kind, project: int | None) -> Hashable:
        """Always None: knowing that nothing has changed would take a round trip to the server."""
        self._require_open()
        return None

    def subscribe(self, listener: Callable[[Sequence[ChangeNotification]], Any]) -> None:
        self._feed.subscribe(listener)

    async def close(self) -> None:
        """Finish queued writes and close all connections."""
        if self._closed:
            return
        self._closed = True
        await self._feed.close()
        await self._writer.close()
        await self._replicas.close()
        await self._readers.close()
        await self.request_buckets.close()


async def _first_schema(connection: PostgresConnection, where: PostgresAddress) -> str:
    schema: str | None = await connection.fetchval("SELECT current_schema()")
    if schema is None:
        raise StorageFailed(
            where.display_url, "the search path names no existing schema; add ?schema=NAME to the URL"
        )
    return schema


async def _default_project(transaction: Transaction) -> Project | None:
    return await transaction.projects.by_name(DEFAULT_PROJECT)
