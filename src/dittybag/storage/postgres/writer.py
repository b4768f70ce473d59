"""The writer: carries out what has queued up, many pieces of work to one commit, and never anything twice.

All writers of a workspace take turns: each holds an advisory lock from the beginning of a transaction to its
end, and draws the numbers of its changes under it. So they are committed in their order, and whoever reads
the log from some number on misses none.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import uuid4

from msgspec import Struct

from dittybag.domain.errors import StorageClosed, StorageError, StorageUnreachable, StorageUnsure
from dittybag.domain.ports import Work
from dittybag.storage.postgres.connections import (
    DRIVER_ERRORS,
    Address,
    Connection,
    Lost,
    channel,
    connect,
    lock_keys,
    understood,
)
from dittybag.storage.postgres.retry import Patience
from dittybag.storage.postgres.transaction import LogEnd, PostgresTransaction, Tables

#: So many pieces of work share a commit at most: the lock is held meanwhile.
MAX_BATCH: Final = 64

#: How long closing waits for what is queued.
CLOSING_SECONDS: Final = 5.0

#: What a writer has committed is of no interest to anybody after so many microseconds.
_FORGOTTEN: Final = 7 * 24 * 3600 * 1_000_000

#: Says in the transaction itself that it was committed, and to those who listen what is new.
_SIGN: Final = """
WITH signed AS (
    INSERT INTO writers (id, last, at) VALUES ($1, $2, $3)
    ON CONFLICT (id) DO UPDATE SET last = excluded.last, at = excluded.at
)
SELECT pg_notify($4, $5) WHERE $5 <> ''
"""


class Job(Struct, eq=False):
    """A piece of work, and where its outcome goes."""

    work: Work[Any]
    actor: str
    viewer: str | None
    future: asyncio.Future[Any]
    #: On the clock of the event loop.
    since: float
    #: Set by whoever waits, if it does not wait any more.
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


class Writer:
    """Runs jobs in the order of their arrival, and answers them when they are durable."""

    def __init__(
        self, where: Address, schema: str, clock: Callable[[], int], committed: Callable[[int], None]
    ) -> None:
        """`committed` is told the number of the last change after each commit that has one."""
        self._where = where
        self._clock = clock
        self._committed = committed
        self._begin = f"BEGIN; SELECT pg_advisory_xact_lock({lock_keys(schema)})"
        self._channel = channel(schema)
        self._id = uuid4()
        #: The number of the last transaction that was signed.
        self._signed = 0
        self._queue: deque[Job] = deque()
        self._running: list[Job] = []
        self._task: asyncio.Task[None] | None = None
        self._tables: Tables | None = None

    def submit(self, job: Job) -> None:
        self._queue.append(job)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Finish what is queued; after a while, leave the rest undone and say so."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=CLOSING_SECONDS)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for job in self._running:
            job.error = StorageUnsure(self._where.shown, "the workspace was closed meanwhile")
            job.deliver()
        for job in self._queue:
            job.error = StorageClosed(self._where.shown)
            job.deliver()
        self._queue.clear()
        if self._tables is not None:
            await asyncio.gather(self._tables.connection.close(timeout=1), return_exceptions=True)

    async def _run(self) -> None:
        while self._queue:
            some = [self._queue.popleft() for _ in range(min(len(self._queue), MAX_BATCH))]
            self._running = [job for job in some if not job.abandoned]
            await self._carry_out(self._running)
            for job in self._running:
                job.deliver()
            self._running = []

    async def _carry_out(self, jobs: list[Job]) -> None:
        if jobs and not await self._commit_patiently(jobs) and len(jobs) > 1:
            # One of them failed half-way. Alone, each harms only itself.
            for job in jobs:
                await self._commit_patiently([job])

    async def _commit_patiently(self, jobs: Sequence[Job]) -> bool:
        """Carry out jobs in one transaction, as often as connections are lost; whether it was committed."""
        patience = Patience(min(job.since for job in jobs))
        while True:
            for job in jobs:
                job.result = job.error = None
            problem: Exception
            try:
                return await self._commit_together(jobs)
            except Lost as error:
                self._hang_up()
                if not patience.exhausted:
                    await patience.wait()
                    continue
                problem = StorageUnreachable(self._where.shown, str(error))
            except Exception as error:  # noqa: BLE001  # those who wait must not wait in vain
                self._hang_up()
                problem = error
            for job in jobs:
                job.error = job.error or problem
            return True

    async def _commit_together(self, jobs: Sequence[Job]) -> bool:
        """Carry out jobs in one transaction; whether it was committed. Raises `Lost` if it surely was not."""
        if self._tables is None or self._tables.connection.is_closed():
            self._tables = Tables(await connect(self._where, writable=True))
        tables, connection = self._tables, self._tables.connection
        end = LogEnd(tables)
        # Every transaction begins with the operator.
        tables.viewing.changed_to(None)
        try:
            await connection.execute(self._begin)
            wrote = False
            for job in jobs:
                await end.show_to(job.viewer)
                transaction = PostgresTransaction(tables, self._clock(), job.actor, end)
                if not await self._try(job, transaction):
                    await connection.execute("ROLLBACK")
                    return False
                wrote = wrote or transaction.wrote
            if not wrote:
                await connection.execute("ROLLBACK")
                return True
            seq = await end.seq() if end.moved else 0
            await self._sign(connection, seq)
        except DRIVER_ERRORS as error:
            raise understood(error, connection, self._where.shown) from error
        await self._commit(connection)
        if seq:
            self._committed(seq)
        return True

    async def _try(self, job: Job, transaction: PostgresTransaction) -> bool:
        """Carry out one job; whether what it left behind may be committed."""
        connection = self._connection
        try:
            job.result = await job.work(transaction)
        except Exception as error:
            job.error = understood(error, connection, self._where.shown)
            if isinstance(job.error, Lost):
                raise job.error from error
            # After an error of its own, PostgreSQL does nothing more in this transaction.
            return not transaction.wrote and not isinstance(error, DRIVER_ERRORS)
        return True

    @property
    def _connection(self) -> Connection:
        assert self._tables is not None
        return self._tables.connection

    async def _sign(self, connection: Connection, seq: int) -> None:
        """Leave a mark in the transaction by which we know it again."""
        now = self._clock()
        if self._signed == 0:
            await connection.execute("DELETE FROM writers WHERE at < $1", now - _FORGOTTEN)
        self._signed += 1
        await connection.fetch(_SIGN, self._id, self._signed, now, self._channel, str(seq or ""))

    async def _commit(self, connection: Connection) -> None:
        """Commit, or find out whether that was done if the connection breaks. Raises `Lost` if it was not."""
        try:
            await connection.execute("COMMIT")
        except DRIVER_ERRORS as error:
            self._hang_up()
            if await self._was_committed():
                return
            problem = understood(error, connection, self._where.shown)
            raise problem if isinstance(problem, Lost | StorageError) else Lost(str(error)) from error

    async def _was_committed(self) -> bool:
        """Whether the transaction that we signed last was committed. Raises `StorageUnsure`."""
        patience = Patience()
        while True:
            try:
                return await self._look_for_signature()
            except (Lost, StorageError, *DRIVER_ERRORS) as error:
                self._hang_up()
                if patience.exhausted:
                    raise StorageUnsure(self._where.shown, str(error)) from error
            await patience.wait()

    async def _look_for_signature(self) -> bool:
        self._tables = Tables(await connect(self._where, writable=True))
        # Once we have the lock, the transaction that had it is over, one way or the other.
        await self._connection.execute(self._begin)
        found: int | None = await self._connection.fetchval(
            "SELECT last FROM writers WHERE id = $1", self._id
        )
        await self._connection.execute("ROLLBACK")
        return found == self._signed

    def _hang_up(self) -> None:
        """Have the next transaction on a new connection; the server forgets what was not committed."""
        if self._tables is not None:
            self._tables.connection.terminate()
            self._tables = None
