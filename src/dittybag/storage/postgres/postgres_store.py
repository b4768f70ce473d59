"""The PostgreSQL store: a workspace in a schema of a database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Self, TypeVar, cast

from dittybag.domain.changes import ChangeNotification, Interface
from dittybag.domain.entities import Kind
from dittybag.domain.errors import (
    DittybagError,
    StorageClosed,
    StorageError,
    StorageFailed,
    WorkspaceNotFound,
)
from dittybag.domain.ports import ReplicaStatus, Transaction, Work
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.storage.clock import now_microseconds
from dittybag.storage.postgres import trigram_indexes
from dittybag.storage.postgres.borrowed_connection import BorrowedConnection
from dittybag.storage.postgres.checked_transaction import (
    CheckedTransaction,
    CheckFailed,
    CommitResult,
    LockNeeded,
    PlannedCommit,
    ProjectCache,
)
from dittybag.storage.postgres.commit_connection import CommitJob
from dittybag.storage.postgres.index_upkeep import IndexUpkeep
from dittybag.storage.postgres.migrations.postgres_migrations import is_current, is_missing, migrate
from dittybag.storage.postgres.postgres_change_feed import ChangeFeed
from dittybag.storage.postgres.postgres_committer import Committer
from dittybag.storage.postgres.postgres_connections import (
    PostgresAddress,
    PostgresConnection,
    parse_address,
    parse_replica,
    require_settings,
)
from dittybag.storage.postgres.postgres_queries import PostgresTables
from dittybag.storage.postgres.postgres_scrubbing import scrub
from dittybag.storage.postgres.postgres_writer import StoreWriter, WriteJob
from dittybag.storage.postgres.read_replicas import LogEnds, NoReplica, ReadReplicas, read_log_ends
from dittybag.storage.postgres.reader_connections import ReaderConnections, run_in_snapshot
from dittybag.storage.postgres.retry import retry_until_connected
from dittybag.storage.sql.default_project import create_default_project
from dittybag.storage.sql.sql_transaction import SqlTransaction

T = TypeVar("T")

#: How often a checked write is tried without a lock: first by presuming, then by reading everything.
CHECKED_ATTEMPTS: Final = 3

#: Each user who writes has tables.
MAX_CACHED_VIEWERS: Final = 256


class PostgresStore:
    """See `dittybag.domain.ports.Store`.

    Reads use two pools of connections. The committer, the writer and the change feed have one each.
    """

    writable = True
    #: A checked write reads before it is queued.
    keeps_order = False

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
        #: For checked writes, by viewer.
        self._checked: dict[str | None, tuple[PostgresTables, ProjectCache]] = {}
        self._upkeep: IndexUpkeep
        self._committer: Committer
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
        self._upkeep = IndexUpkeep(self._where, schema, seq)
        self._committer = Committer(self._where, schema, self._note_commit)
        self._writer = StoreWriter(self._where, schema, self._clock, self._note_commit)

    def _note_commit(self, first_seq: int, last_seq: int) -> None:
        """Note a commit of this process, with all changes from `first_seq` to `last_seq`."""
        self._feed.record_own_change(last_seq)
        self._upkeep.note_change(last_seq)

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
        self,
        work: Work[T],
        *,
        actor: str,
        viewer: str | None = None,
        interface: Interface | None = None,
        checked: bool = False,
    ) -> T:
        self._require_open()
        since = asyncio.get_running_loop().time()
        for attempt in range(CHECKED_ATTEMPTS if checked else 0):
            commit = partial(self._commit, actor, viewer, interface, since)
            try:
                return await self._write_checked(work, viewer, commit, presumes=attempt == 0)
            except CheckFailed:
                continue
            except LockNeeded:
                break
        return await self._write_locked(work, actor, viewer, interface, since)

    async def _write_checked(
        self,
        work: Work[T],
        viewer: str | None,
        commit: Callable[[PlannedCommit], Awaitable[CommitResult]],
        *,
        presumes: bool,
    ) -> T:
        """Run `work` without a lock. Raises `CheckFailed` and `LockNeeded`; then nothing was written."""
        tables, cache = self._checked_tables(viewer)
        transaction = CheckedTransaction(tables, self._clock(), cache, commit, presumes=presumes)
        try:
            result = await work(transaction)
        except CheckFailed:
            cache.clear()
            raise
        except DittybagError as error:
            if isinstance(error, StorageError) or not transaction.used_cache:
                raise
            # It may be due to a project that has changed meanwhile.
            raise CheckFailed from error
        if transaction.used_cache and not transaction.has_committed:
            raise CheckFailed
        return result

    def _checked_tables(self, viewer: str | None) -> tuple[PostgresTables, ProjectCache]:
        """Return tables that read on pooled connections, and the projects that were read by them."""
        if (known := self._checked.get(viewer)) is None:
            if len(self._checked) >= MAX_CACHED_VIEWERS:
                self._checked.clear()
            run = partial(self._retry_on_connection, viewer)
            # Checked use cases only read, which needs no more of a connection than this.
            connection = cast("PostgresConnection", BorrowedConnection(run))
            known = PostgresTables(connection), ProjectCache()
            self._checked[viewer] = known
        return known

    async def _retry_on_connection(self, viewer: str | None, work: Callable[[PostgresTables], Any]) -> Any:
        return await retry_until_connected(lambda: self._readers.run(work, viewer), self.path)

    async def _commit(
        self,
        actor: str,
        viewer: str | None,
        interface: Interface | None,
        since: float,
        planned: PlannedCommit,
    ) -> CommitResult:
        self._require_open()
        future = asyncio.get_running_loop().create_future()
        return await self._committer.commit(
            CommitJob(
                planned=planned, actor=actor, viewer=viewer, interface=interface, future=future, since=since
            )
        )

    async def _write_locked(
        self, work: Work[T], actor: str, viewer: str | None, interface: Interface | None, since: float
    ) -> T:
        self._require_open()
        job = WriteJob(
            work=work,
            actor=actor,
            viewer=viewer,
            interface=interface,
            future=asyncio.get_running_loop().create_future(),
            since=since,
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
        await asyncio.gather(self._committer.close(), self._writer.close())
        await self._upkeep.close()
        await self._replicas.close()
        await self._readers.close()


async def _first_schema(connection: PostgresConnection, where: PostgresAddress) -> str:
    schema: str | None = await connection.fetchval("SELECT current_schema()")
    if schema is None:
        raise StorageFailed(
            where.display_url, "the search path names no existing schema; add ?schema=NAME to the URL"
        )
    return schema


async def _default_project(transaction: Transaction) -> Project | None:
    return await transaction.projects.by_name(DEFAULT_PROJECT)
