"""The writer, which runs queued jobs, commits several of them together, and never runs a committed job again.

Writers of a workspace are serialised by an advisory lock, which each holds for a whole transaction and under
which it assigns the `seq` of its changes. Changes are therefore committed in the order of `seq`, and a reader
that follows the log misses none.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import uuid4

from msgspec import Struct

from dittybag.domain.changes import Interface
from dittybag.domain.errors import StorageClosed, StorageError, StorageUnreachable, StorageUnsure
from dittybag.domain.ports import Work
from dittybag.storage.postgres.connection_monitor import ConnectionMonitor
from dittybag.storage.postgres.log_end import ViewedLogEnd
from dittybag.storage.postgres.migrations.postgres_migrations import require_current
from dittybag.storage.postgres.postgres_connections import (
    DRIVER_ERRORS,
    RECONNECT_SECONDS,
    ConnectionLost,
    PostgresAddress,
    PostgresConnection,
    connect,
    lock_keys,
    notification_channel,
    quoted,
    translate_error,
)
from dittybag.storage.postgres.postgres_queries import PostgresTables
from dittybag.storage.postgres.postgres_transaction import PostgresTransaction
from dittybag.storage.postgres.retry import Backoff

#: At most this many jobs share a commit, because the lock is held until then.
MAX_BATCH: Final = 64

#: How long closing waits for queued jobs.
CLOSING_SECONDS: Final = 5.0

#: How long other writers wait for a process that hangs in a transaction.
_IDLE: Final = "SET LOCAL idle_in_transaction_session_timeout = '3s'"

#: How long a transaction waits for the lock, in milliseconds.
_LOCK_MILLISECONDS: Final = 8_000

#: Records the commit within the transaction, notifies the change feeds, and returns the schema version.
_RECORD_COMMIT: Final = """
SELECT coalesce(max(number), 0), record_commit($1, $2, '{}'), CASE WHEN $4 <> '' THEN pg_notify($3, $4) END
FROM applied_migrations
"""


class WriteJob(Struct, eq=False):
    """A queued write, and the future for its outcome."""

    work: Work[Any]
    actor: str
    viewer: str | None
    interface: Interface | None
    future: asyncio.Future[Any]
    #: The time of submission, on the clock of the event loop.
    since: float
    #: Set by the caller when it no longer waits.
    abandoned: bool = False
    result: Any = None
    error: Exception | None = None

    def deliver(self) -> None:
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class StoreWriter:
    """Runs jobs in the order of their arrival, and delivers them when they are durable."""

    def __init__(
        self,
        where: PostgresAddress,
        schema: str,
        clock: Callable[[], int],
        committed: Callable[[int, int], None],
    ) -> None:
        """`committed` is called with the first and the last `seq` of each commit with changes."""
        self._where = where
        self._clock = clock
        self._committed = committed
        self._begin = (
            _IDLE,
            f"SELECT {quoted(schema)}.lock_writers({lock_keys(schema)}, {_LOCK_MILLISECONDS})",
        )
        self._settle = f"SELECT {quoted(schema)}.settle_commit($1, $2, {lock_keys(schema)})"
        self._channel = notification_channel(schema)
        self._id = uuid4()
        #: The number of the last recorded commit.
        self._commit_number = 0
        self._queue: deque[WriteJob] = deque()
        self._running: list[WriteJob] = []
        self._task: asyncio.Task[None] | None = None
        self._tables: PostgresTables | None = None
        #: A dead connection may not report an error.
        self._monitor = ConnectionMonitor(where, self._in_use, lambda: None)

    def submit(self, job: WriteJob) -> None:
        self._queue.append(job)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Finish queued jobs. After `CLOSING_SECONDS`, fail the rest."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=CLOSING_SECONDS)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for job in self._running:
            job.error = StorageUnsure(self._where.display_url, "the workspace was closed during the write")
            job.deliver()
        for job in self._queue:
            job.error = StorageClosed(self._where.display_url)
            job.deliver()
        self._queue.clear()
        await self._monitor.close()
        if self._tables is not None:
            await asyncio.gather(self._tables.connection.close(timeout=1), return_exceptions=True)

    def _in_use(self) -> list[PostgresConnection]:
        return [self._tables.connection] if self._running and self._tables is not None else []

    async def _run(self) -> None:
        while self._queue:
            jobs = [self._queue.popleft() for _ in range(min(len(self._queue), MAX_BATCH))]
            self._running = [job for job in jobs if not job.abandoned]
            await self._run_jobs(self._running)
            for job in self._running:
                job.deliver()
            if any(isinstance(job.error, StorageUnreachable | StorageUnsure) for job in self._running):
                self._fail_old_jobs()
            self._running = []

    def _fail_old_jobs(self) -> None:
        """Fail the jobs that have waited while the server could not be reached: they need not wait again."""
        problem = StorageUnreachable(self._where.display_url, "the server does not respond")
        for job in tuple(self._queue):
            if Backoff(job.since).exhausted:
                self._queue.remove(job)
                job.error = problem
                job.deliver()

    async def _run_jobs(self, jobs: list[WriteJob]) -> None:
        if jobs and not await self._run_with_retry(jobs) and len(jobs) > 1:
            # One job failed halfway. Run each in its own transaction.
            for job in jobs:
                await self._run_with_retry([job])

    async def _run_with_retry(self, jobs: Sequence[WriteJob]) -> bool:
        """Run jobs in one transaction, again after each lost connection.

        Returns False if one failed halfway, so all were rolled back.
        """
        backoff = Backoff(min(job.since for job in jobs))
        while True:
            for job in jobs:
                job.result = job.error = None
            problem: Exception
            try:
                return await self._run_in_transaction(jobs)
            except ConnectionLost as error:
                self._drop_connection()
                if not backoff.exhausted:
                    await backoff.wait()
                    continue
                problem = StorageUnreachable(self._where.display_url, str(error))
            except Exception as error:  # noqa: BLE001  # every waiting caller must get an outcome
                self._drop_connection()
                problem = error
            for job in jobs:
                job.error = job.error or problem
            return True

    async def _run_in_transaction(self, jobs: Sequence[WriteJob]) -> bool:
        """Run jobs in one transaction. Returns False if it was rolled back.

        Raises `ConnectionLost` if it was certainly not committed.
        """
        if self._tables is None or self._tables.connection.is_closed():
            self._tables = PostgresTables(
                await connect(self._where, writable=True, seconds=RECONNECT_SECONDS)
            )
        tables, connection = self._tables, self._tables.connection
        self._monitor.start()
        end = ViewedLogEnd(tables)
        # The operator is the viewer at the beginning of every transaction.
        tables.row_security.assume_for_transaction(None)
        try:
            await connection.begin(*self._begin)
            wrote = False
            for job in jobs:
                await end.set_viewer(job.viewer)
                tables.driver.wrote = False
                if not await self._run_job(
                    job, PostgresTransaction(tables, self._clock(), job.actor, job.interface, end)
                ):
                    await connection.execute("ROLLBACK")
                    return False
                wrote = wrote or tables.driver.wrote
            if not wrote:
                await connection.execute("ROLLBACK")
                return True
            seq = await end.seq() if end.appended else 0
            await self._record_commit(connection, seq)
        except DRIVER_ERRORS as error:
            raise translate_error(error, connection, self._where.display_url) from error
        await self._commit(connection)
        if seq:
            self._committed(seq - end.appended + 1, seq)
        return True

    async def _run_job(self, job: WriteJob, transaction: PostgresTransaction) -> bool:
        """Run one job. Returns whether the transaction may be committed."""
        if job.abandoned:
            # The caller was cancelled while this process waited for the lock.
            return True
        connection = self._connected.connection
        try:
            job.result = await job.work(transaction)
        except Exception as error:
            job.error = translate_error(error, connection, self._where.display_url)
            if isinstance(job.error, ConnectionLost):
                raise job.error from error
            # After a failed statement, PostgreSQL rejects all others in this transaction.
            return not self._connected.driver.wrote and not isinstance(error, DRIVER_ERRORS)
        return True

    @property
    def _connected(self) -> PostgresTables:
        assert self._tables is not None
        return self._tables

    async def _record_commit(self, connection: PostgresConnection, seq: int) -> None:
        """Record this commit in the transaction, so that it can be found later."""
        self._commit_number += 1
        version = await connection.fetchval(
            _RECORD_COMMIT, self._id, self._commit_number, self._channel, str(seq or "")
        )
        # Another process may have upgraded the schema meanwhile.
        require_current(version, self._where)

    async def _commit(self, connection: PostgresConnection) -> None:
        """Commit. If the connection is lost meanwhile, find out whether the server has committed.

        Raises `ConnectionLost` if it has not.
        """
        try:
            await connection.execute("COMMIT")
        except DRIVER_ERRORS as error:
            self._drop_connection()
            if await self._was_committed():
                return
            problem = translate_error(error, connection, self._where.display_url)
            raise (
                problem if isinstance(problem, ConnectionLost | StorageError) else ConnectionLost(str(error))
            ) from error

    async def _was_committed(self) -> bool:
        """Whether the last recorded transaction was committed. Raises `StorageUnsure`."""
        backoff = Backoff()
        while True:
            try:
                return await self._find_commit_record()
            except (ConnectionLost, StorageError, *DRIVER_ERRORS) as error:
                self._drop_connection()
                if backoff.exhausted:
                    raise StorageUnsure(self._where.display_url, str(error)) from error
            await backoff.wait()

    async def _find_commit_record(self) -> bool:
        self._tables = PostgresTables(await connect(self._where, writable=True, seconds=RECONNECT_SECONDS))
        # When it gets the lock, the old transaction has ended, committed or not.
        made = await self._connected.connection.fetchval(self._settle, self._id, self._commit_number)
        return made is not None

    def _drop_connection(self) -> None:
        """Drop the connection, so that the server rolls back. The next transaction opens a new one."""
        if self._tables is not None:
            self._tables.connection.terminate()
            self._tables = None
