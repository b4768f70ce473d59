"""A workspace in a SQLite file."""

from __future__ import annotations

import threading
import time
from asyncio import AbstractEventLoop, Future, get_running_loop
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import apsw

from satchel.domain.changes import ChangeNews, Kind
from satchel.domain.ports import Transaction, Work
from satchel.domain.projects import DEFAULT_PROJECT, Project
from satchel.storage.sqlite.connections import connect, prepare_folder, translated
from satchel.storage.sqlite.feed import INTERVAL_SECONDS, Feed
from satchel.storage.sqlite.migrations import is_current, migrate
from satchel.storage.sqlite.transaction import SqliteTransaction
from satchel.storage.sqlite.writer import Job, Writer, run_to_end

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")

#: How long closing waits for a write that nobody waits for any more: another process may hold the lock.
CLOSING_SECONDS: Final = 0.15


def microseconds() -> int:
    return time.time_ns() // 1000


class SqliteStore:
    """See `satchel.domain.ports.Store`.

    Quick reads run where they are asked for; slow ones in threads; writes in a thread of their own.
    """

    def __init__(self, path: str, clock: Callable[[], int] = microseconds) -> None:
        """Open the file; it is made if it is not there, and brought to the newest schema if it is old."""
        self.path = path
        self._clock = clock
        self._reader = self._open()
        with translated(path):
            self._feed = Feed(self._reader)
        self._writer = Writer(path, clock, self._deliver)
        self._loop: AbstractEventLoop | None = None
        self._waiting: dict[Job, Future[Any]] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._pool_connections: list[apsw.Connection] = []
        self._pooled = threading.local()
        self._closed = False

    def _open(self) -> apsw.Connection:
        prepare_folder(self.path)
        reader = connect(self.path, writable=False)
        try:
            if not is_current(reader, self.path):
                reader.close()
                migrate(self.path)
                reader = connect(self.path, writable=False)
            with translated(self.path):
                if not reader.execute("SELECT 1 FROM projects WHERE name = ?", (DEFAULT_PROJECT,)).get:
                    self._create_default_project()
        except BaseException:
            reader.close()
            raise
        return reader

    def _create_default_project(self) -> None:
        async def create(transaction: Transaction) -> None:
            if await transaction.projects.by_name(DEFAULT_PROJECT) is None:
                now = transaction.now
                project = Project(id=0, name=DEFAULT_PROJECT, created_at=now, updated_at=now)
                await transaction.write("create", None, project)

        writer = Writer(self.path, self._clock, lambda jobs: None)
        job = Job(work=create, actor="satchel")
        writer.submit(job)
        writer.close()
        if job.error is not None:
            raise job.error

    # Reading

    async def read(self, work: Work[T], *, slow: bool = False) -> T:
        if slow:
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="satchel-reader")
            return await get_running_loop().run_in_executor(self._pool, self._read_in_thread, work)
        return self._read(self._reader, work)

    def _read_in_thread(self, work: Work[T]) -> T:
        connection: apsw.Connection | None = getattr(self._pooled, "connection", None)
        if connection is None:
            connection = self._pooled.connection = connect(self.path, writable=False)
            self._pool_connections.append(connection)
        return self._read(connection, work)

    def _read(self, connection: apsw.Connection, work: Work[T]) -> T:
        with translated(self.path):
            connection.execute("BEGIN")
            try:
                return run_to_end(work(SqliteTransaction(connection, self._clock())))
            finally:
                connection.execute("COMMIT")

    # Writing

    async def write(self, work: Work[T], *, actor: str) -> T:
        loop = self._loop = get_running_loop()
        job = Job(work=work, actor=actor)
        future: Future[T] = loop.create_future()
        self._waiting[job] = future
        self._writer.submit(job)
        try:
            return await future
        finally:
            # If nobody waits any more and it has not begun, it need not.
            job.abandoned = True

    def _deliver(self, jobs: Sequence[Job]) -> None:
        """Called in the writer's thread."""
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._hand_out, jobs)
        except RuntimeError:
            # The loop is closed, and nobody waits.
            return

    def _hand_out(self, jobs: Sequence[Job]) -> None:
        assert self._loop is not None
        for job in jobs:
            future = self._waiting.pop(job)
            if future.done():
                continue
            if job.error is not None:
                future.set_exception(job.error)
            else:
                future.set_result(job.result)
        # After those who waited have had their turn: an answer goes out before the news of it.
        self._loop.call_soon(self._check)

    # News

    def stamp(self, kind: Kind, project: int) -> Hashable:
        with translated(self.path):
            return self._feed.stamp(kind, project)

    def subscribe(self, listener: Callable[[Sequence[ChangeNews]], Any]) -> None:
        if not self._feed.listeners:
            self._watch(get_running_loop())
        self._feed.listeners.append(listener)

    def _watch(self, loop: AbstractEventLoop) -> None:
        if not self._closed:
            self._check()
            loop.call_later(INTERVAL_SECONDS, self._watch, loop)

    def _check(self) -> None:
        if not self._closed:
            # Whatever keeps us from reading now will keep requests from it too, and they tell.
            try:
                self._feed.check()
            except apsw.Error:
                return

    async def close(self) -> None:
        """Finish what is being written, and let go of the file."""
        if self._closed:
            return
        self._closed = True
        self._writer.close(CLOSING_SECONDS)
        if self._pool is not None:
            self._pool.shutdown()
        for connection in self._pool_connections:
            connection.close()
        self._reader.close()
