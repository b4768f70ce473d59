"""The SQLite store: a workspace in one file."""

from __future__ import annotations

import threading
from asyncio import AbstractEventLoop, Future, get_running_loop
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import apsw

from dittybag.domain.changes import ChangeNotification, Interface
from dittybag.domain.entities import Kind
from dittybag.domain.errors import StorageClosed, StorageFailed, StorageReadOnly
from dittybag.domain.ports import ReplicaStatus, Transaction, Work
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.storage.clock import now_microseconds
from dittybag.storage.sql.default_project import create_default_project
from dittybag.storage.sql.sql_transaction import SqlTransaction
from dittybag.storage.sqlite.migrations.sqlite_migrations import is_current, migrate, require_current
from dittybag.storage.sqlite.sqlite_change_feed import INTERVAL_SECONDS, ChangeFeed
from dittybag.storage.sqlite.sqlite_connections import (
    OpenFiles,
    connect,
    connect_unwritable,
    create_private_file,
    is_writable,
    prepare_folder,
    require_dittybag_file,
    to_storage_error,
    translate_errors,
)
from dittybag.storage.sqlite.sqlite_driver import run_synchronously
from dittybag.storage.sqlite.sqlite_queries import SqliteTables
from dittybag.storage.sqlite.sqlite_writer import StoreWriter, WriteJob

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")

#: Notifications of own writes are delayed by this, so that several are sent together.
NOTIFY_DELAY_SECONDS: Final = 0.01

#: How long closing waits for queued writes: another process may hold the lock.
CLOSING_SECONDS: Final = 0.15

_OPEN_ELSEWHERE: Final = "open it once where it can be written"


async def _read_projects(transaction: Transaction) -> None:
    await transaction.projects.all()


class SqliteStore:
    """See `dittybag.domain.ports.Store`.

    Quick reads run on the event loop, slow ones in a thread pool, and writes in the writer thread. SQLite has
    no row-level security, so `viewer` is ignored. So is `checked`: a lock takes no round trip.
    """

    keeps_order = True

    def __init__(
        self,
        path: str,
        clock: Callable[[], int] = now_microseconds,
        *,
        read_only: bool = False,
        after_commit: Callable[[], None] | None = None,
    ) -> None:
        """Open the file. Creates it if it is missing, and migrates an older schema.

        With `read_only`, a file that cannot be written is opened as well. `after_commit` is called in the
        thread of the writer.
        """
        self.path = path
        self.writable = not read_only or is_writable(path)
        self._clock = clock
        reader = self._open()
        self._tables = SqliteTables(reader)
        self._single = SqlTransaction(self._tables, 0)
        self._files = OpenFiles(path)
        with translate_errors(path):
            self._feed = ChangeFeed(self._tables)
        self._writer = StoreWriter(path, self._files, clock, self._deliver, after_commit=after_commit)
        self._loop: AbstractEventLoop | None = None
        self._waiting: dict[WriteJob, Future[Any]] = {}
        self._listeners: list[Callable[[Sequence[ChangeNotification]], Any]] = []
        self._notify_scheduled = False
        self._pool: ThreadPoolExecutor | None = None
        self._pool_tables: list[SqliteTables] = []
        self._thread_local = threading.local()
        self._closed = False

    def _connect(self) -> apsw.Connection:
        """Open a connection for reading."""
        return connect(self.path, writable=False) if self.writable else connect_unwritable(self.path)

    def _open_unwritable(self) -> apsw.Connection:
        require_dittybag_file(self.path)
        try:
            reader = self._connect()
        except StorageReadOnly as error:
            raise StorageFailed(
                self.path, f"its write-ahead log cannot be read here; {_OPEN_ELSEWHERE}"
            ) from error
        if not is_current(reader, self.path):
            reader.close()
            raise StorageFailed(self.path, f"its schema must be upgraded; {_OPEN_ELSEWHERE}")
        return reader

    def _open(self) -> apsw.Connection:
        if not self.writable:
            return self._open_unwritable()
        prepare_folder(self.path)
        create_private_file(self.path)
        require_dittybag_file(self.path)
        reader = connect(self.path, writable=False)
        try:
            if not is_current(reader, self.path):
                reader.close()
                migrate(self.path)
                reader = connect(self.path, writable=False)
            with translate_errors(self.path):
                if not reader.execute("SELECT 1 FROM projects WHERE name = ?", (DEFAULT_PROJECT,)).get:
                    self._create_default_project()
        except BaseException:
            reader.close()
            raise
        return reader

    def _create_default_project(self) -> None:
        files = OpenFiles(self.path)
        writer = StoreWriter(self.path, files, self._clock, lambda jobs: None)
        job = WriteJob(work=create_default_project, actor="dittybag")
        writer.submit(job)
        writer.close()
        if job.error is not None:
            raise job.error

    async def check(self) -> None:
        self._require_open()
        self._files.require_in_place()
        # A new connection reads the file; that of the store may have all it needs in its cache.
        connection = self._connect()
        try:
            require_current(connection, self.path)
            self._read(SqliteTables(connection), _read_projects)
        finally:
            connection.close()

    async def warnings(self) -> list[str]:
        return []

    def replicas(self) -> Sequence[ReplicaStatus]:
        return ()

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
        if single:
            return self._read_single(work)
        if slow:
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="dittybag-reader")
            return await self._start_in_thread(self._pool, work)
        return self._read(self._tables, work)

    def _read_single(self, work: Work[T]) -> T:
        try:
            return run_synchronously(work(self._single))
        except apsw.Error as error:
            raise to_storage_error(error, self.path) from error

    def _start_in_thread(self, pool: ThreadPoolExecutor, work: Work[T]) -> Future[T]:
        try:
            return get_running_loop().run_in_executor(pool, self._read_in_thread, work)
        except RuntimeError as error:
            # The system cannot start a thread.
            raise StorageFailed(self.path, str(error)) from error

    def _read_in_thread(self, work: Work[T]) -> T:
        tables: SqliteTables | None = getattr(self._thread_local, "tables", None)
        if tables is None:
            # SQLite would create a missing file.
            self._files.require_in_place()
            tables = self._thread_local.tables = SqliteTables(self._connect())
            self._pool_tables.append(tables)
        return self._read(tables, work)

    def _read(self, tables: SqliteTables, work: Work[T]) -> T:
        with translate_errors(self.path):
            tables.connection.execute("BEGIN")
            try:
                return run_synchronously(work(SqlTransaction(tables, self._clock())))
            finally:
                # After some errors SQLite has already rolled back.
                if tables.connection.in_transaction:
                    tables.connection.execute("COMMIT")

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
        loop = self._loop = get_running_loop()
        job = WriteJob(work=work, actor=actor, interface=interface)
        future: Future[T] = loop.create_future()
        self._writer.submit(job)
        self._waiting[job] = future
        try:
            return await future
        finally:
            # If the caller was cancelled, the writer skips a job that has not started.
            job.abandoned = True

    async def scrub(self) -> None:
        self._require_open()
        from dittybag.storage.sqlite.sqlite_scrubbing import scrub

        await get_running_loop().run_in_executor(None, scrub, self.path)

    def _deliver(self, jobs: Sequence[WriteJob]) -> None:
        """Called in the writer thread."""
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._resolve_futures, jobs)
        except RuntimeError:
            # The loop is closed, so no caller is waiting.
            return

    def _resolve_futures(self, jobs: Sequence[WriteJob]) -> None:
        assert self._loop is not None
        for job in jobs:
            future = self._waiting.pop(job)
            if future.done():
                continue
            if job.error is not None:
                future.set_exception(job.error)
            else:
                future.set_result(job.result)
        self._notify_soon(self._loop)

    # Notifications

    def stamp(self, kind: Kind, project: int | None) -> Hashable:
        self._require_open()
        try:
            return self._feed.stamp(kind, project)
        except apsw.Error:
            # Nothing is cached, and the next read reports the error.
            return None

    def subscribe(self, listener: Callable[[Sequence[ChangeNotification]], Any]) -> None:
        loop = get_running_loop()
        # The new listener is not notified of earlier changes.
        self._notify(loop)
        if not self._listeners:
            self._feed.listening = True
            loop.call_later(INTERVAL_SECONDS, self._poll, loop)
        self._listeners.append(listener)

    def _poll(self, loop: AbstractEventLoop) -> None:
        if not self._closed:
            self._notify(loop)
            loop.call_later(INTERVAL_SECONDS, self._poll, loop)

    def _notify_soon(self, loop: AbstractEventLoop) -> None:
        """Schedule notifications of own writes: after their results, and several together."""
        if self._listeners and not self._notify_scheduled:
            self._notify_scheduled = True
            loop.call_later(NOTIFY_DELAY_SECONDS, self._notify, loop)

    def _notify(self, loop: AbstractEventLoop) -> None:
        self._notify_scheduled = False
        if self._closed:
            return
        try:
            notifications = self._feed.take_notifications()
        except apsw.Error:
            # Requests fail with the same error and report it.
            return
        if self._feed.behind:
            self._notify_soon(loop)
        if notifications:
            for listener in self._listeners:
                listener(notifications)

    async def close(self) -> None:
        """Finish the current write and close the file."""
        if self._closed:
            return
        self._closed = True
        self._writer.close(CLOSING_SECONDS)
        if self._pool is not None:
            for tables in self._pool_tables:
                tables.connection.interrupt()
            self._pool.shutdown(cancel_futures=True)
        for tables in (*self._pool_tables, self._tables):
            tables.connection.close()
