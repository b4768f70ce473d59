"""The writer thread, which runs queued jobs and commits several of them together."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import apsw
from msgspec import Struct

from dittybag.domain.changes import Interface
from dittybag.domain.errors import StorageFailed, StorageReplaced, StorageUnsure
from dittybag.domain.ports import Work
from dittybag.storage.sql.sql_transaction import LogEnd, SqlTransaction
from dittybag.storage.sqlite.migrations.sqlite_migrations import require_current
from dittybag.storage.sqlite.sqlite_connections import OpenFiles, connect, to_storage_error
from dittybag.storage.sqlite.sqlite_driver import run_synchronously
from dittybag.storage.sqlite.sqlite_queries import SqliteTables

#: At most this many jobs share a commit, because the write lock is held until then.
MAX_BATCH: Final = 128


class WriteJob(Struct, eq=False):
    """A queued write, and later its result or error."""

    work: Work[Any]
    actor: str
    interface: Interface | None = None
    #: Set by the caller when it no longer waits.
    abandoned: bool = False
    result: Any = None
    error: Exception | None = None


class StoreWriter:
    """Runs jobs in the order of their arrival, and delivers them when they are durable."""

    def __init__(
        self,
        path: str,
        files: OpenFiles,
        clock: Callable[[], int],
        deliver: Callable[[Sequence[WriteJob]], None],
        *,
        after_commit: Callable[[], None] | None = None,
    ) -> None:
        """`deliver` is called in the writer thread with completed jobs, and then `after_commit`."""
        self._path = path
        self._files = files
        self._clock = clock
        self._deliver = deliver
        self._queue: deque[WriteJob] = deque()
        self._work_available = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._tables: SqliteTables | None = None
        self._after_commit = after_commit
        #: The end of the log after the last commit, and the version of the data then.
        self._end: LogEnd | None = None
        self._version = 0

    def submit(self, job: WriteJob) -> None:
        """Queue a job. Raises `StorageFailed` if the system cannot start the writer thread."""
        with self._work_available:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="dittybag-writer", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:
                    raise StorageFailed(self._path, str(error)) from error
                self._thread = thread
            self._queue.append(job)
            self._work_available.notify()

    def close(self, seconds: float | None = None) -> None:
        """Finish queued jobs and end. After `seconds`, give up; the rest is not acknowledged."""
        with self._work_available:
            self._closing = True
            self._work_available.notify()
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        while jobs := self._next():
            self._run_jobs([job for job in jobs if not job.abandoned])
            self._deliver(jobs)
            if self._tables is not None and self._after_commit is not None:
                self._after_commit()
        if self._tables is not None:
            self._tables.connection.close()

    def _next(self) -> list[WriteJob]:
        """Wait for jobs, or for the end. Returns none at the end."""
        with self._work_available:
            while not self._queue and not self._closing:
                self._work_available.wait()
            return [self._queue.popleft() for _ in range(min(len(self._queue), MAX_BATCH))]

    def _run_jobs(self, jobs: list[WriteJob]) -> None:
        if jobs and not self._run_in_transaction(jobs) and len(jobs) > 1:
            # One job failed halfway. Run each in its own transaction.
            for job in jobs:
                job.result = job.error = None
                self._run_in_transaction([job])

    def _run_in_transaction(self, jobs: Sequence[WriteJob]) -> bool:
        """Run jobs in one transaction. Returns False if one failed halfway, so all were rolled back."""
        try:
            if self._tables is None:
                self._files.require_in_place()
                self._tables = SqliteTables(connect(self._path, writable=True))
                self._end = None
            return self._run_with_tables(jobs, self._tables)
        except Exception as error:  # noqa: BLE001  # every waiting caller must get an outcome
            problem = self._translate_error(error)
            for job in jobs:
                job.error = job.error or problem
        return True

    def _run_with_tables(self, jobs: Sequence[WriteJob], tables: SqliteTables) -> bool:
        connection = tables.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            end = self._log_end(tables)
            if not all(self._run_job(job, tables, end) for job in jobs):
                return False
            tables.queries.pending.write()
            self._files.require_in_place()
            self._commit(connection)
            self._end, self._version = end, connection.data_version()
        finally:
            tables.queries.pending.discard()
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        return True

    def _log_end(self, tables: SqliteTables) -> LogEnd:
        """Return the end of the log. Raises `StorageError` unless the schema is the newest."""
        end, self._end = self._end, None
        if end is not None and tables.connection.data_version() == self._version:
            return end
        # Another process may have written meanwhile, and even upgraded the schema.
        require_current(tables.connection, self._path)
        return LogEnd(tables)

    def _commit(self, connection: apsw.Connection) -> None:
        """Commit. Raises `StorageUnsure` if the change may be in the files nevertheless."""
        try:
            connection.execute("COMMIT")
            self._files.require_in_place()
        except (apsw.IOError, StorageReplaced) as error:
            # After a failed write, the transaction in the log is incomplete, so SQLite ignores it. After a
            # failed sync it may be complete.
            if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_WRITE:
                raise
            raise StorageUnsure(self._path, str(error)) from error

    def _run_job(self, job: WriteJob, tables: SqliteTables, end: LogEnd) -> bool:
        """Run one job. Returns whether the transaction may be committed."""
        if job.abandoned:
            # The caller was cancelled while this process waited for the lock.
            return True
        transaction = SqlTransaction(tables, self._clock(), job.actor, job.interface, end)
        tables.driver.wrote = False
        try:
            job.result = run_synchronously(job.work(transaction))
        except Exception as error:  # noqa: BLE001  # the waiting caller gets it
            job.error = self._translate_error(error)
            # After an error, SQLite may have rolled back.
            return not tables.driver.wrote and not isinstance(error, apsw.Error)
        return True

    def _translate_error(self, error: Exception) -> Exception:
        return to_storage_error(error, self._path) if isinstance(error, apsw.Error) else error
