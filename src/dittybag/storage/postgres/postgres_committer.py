"""Commits planned writes: several at once, in one call of a function of the database, and never twice.

The function takes the writers' lock, and its statement is the whole transaction. So nobody waits for a
process that is cut off from the server.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import uuid4

from msgspec import Struct

from dittybag.domain.changes import Interface
from dittybag.domain.errors import StorageBusy, StorageClosed, StorageError, StorageUnreachable, StorageUnsure
from dittybag.storage.postgres.checked_transaction import CheckFailed, CommitResult, PlannedCommit
from dittybag.storage.postgres.encoded_writes import EncodedWrite, columns_of
from dittybag.storage.postgres.migrations.postgres_migrations import require_current
from dittybag.storage.postgres.postgres_connections import (
    DRIVER_ERRORS,
    LOCK_CLASS,
    RECONNECT_SECONDS,
    ConnectionLost,
    PostgresAddress,
    PostgresConnection,
    connect,
    lock_key,
    notification_channel,
    quoted,
    translate_error,
)
from dittybag.storage.postgres.retry import Backoff
from dittybag.storage.postgres.row_security import viewer_setting
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA

#: At most this many use cases, and about this many characters, are committed together.
MAX_BATCH: Final = 64
MAX_SIZE: Final = 4 << 20

#: After this time a caller gets the outcome, even if it is that nobody knows.
RESPONSE_SECONDS: Final = 10.0

#: How long the function may take: longer than it waits for the lock.
CALL_SECONDS: Final = 5.0

#: How long closing waits for queued commits.
CLOSING_SECONDS: Final = 5.0

_JOB_VALUES: Final = 11
_PARAMETERS: Final = 6 + _JOB_VALUES + 2 + 2 + len(EncodedWrite._fields)


class CommitJob(Struct, eq=False):
    """A commit that a caller waits for."""

    planned: PlannedCommit
    actor: str
    viewer: str | None
    interface: Interface | None
    future: asyncio.Future[CommitResult]
    #: When the caller began, on the clock of the event loop.
    since: float
    #: Whether the server may have received it, and the outcome is not known.
    in_doubt: bool = False

    @property
    def is_waited_for(self) -> bool:
        return not self.future.done()

    def fail(self, error: Exception) -> None:
        if self.is_waited_for:
            self.future.set_exception(error)

    def deliver(self, first_seq: int, numbers: list[int]) -> None:
        if not first_seq:
            self.fail(CheckFailed())
        elif self.is_waited_for:
            self.future.set_result(CommitResult(first_seq, numbers))

    @property
    def values(self) -> tuple[Any, ...]:
        planned = self.planned
        owner, key, digest = planned.key or (None, None, None)
        counts = len(planned.projects), len(planned.contents), len(planned.writes)
        return (
            viewer_setting(self.viewer), self.actor, self.interface, planned.at, owner, key, digest,
            planned.keys_valid_since, *counts,
        )  # fmt: skip


class Committer:
    """Commits in the order of arrival, one batch at a time."""

    def __init__(self, where: PostgresAddress, schema: str, committed: Callable[[int], None]) -> None:
        """`committed` is called with the `seq` of the last change after each commit with changes."""
        self._where = where
        self._committed = committed
        self._id = uuid4()
        self._lock = LOCK_CLASS, lock_key(schema)
        self._channel = notification_channel(schema)
        placeholders = ", ".join(f"${number}" for number in range(1, _PARAMETERS + 1))
        self._call_sql = f"SELECT {quoted(schema)}.commit_writes({placeholders})"
        self._settle_sql = f"SELECT {quoted(schema)}.settle_commit($1, $2, $3, $4)"
        #: The number of the last call.
        self._number = 0
        self._queue: deque[CommitJob] = deque()
        self._running: Sequence[CommitJob] = ()
        self._task: asyncio.Task[None] | None = None
        self._connection: PostgresConnection | None = None

    async def commit(self, job: CommitJob) -> CommitResult:
        """Commit. Raises `CheckFailed` if something that was read no longer holds."""
        loop = asyncio.get_running_loop()
        timer = loop.call_at(job.since + RESPONSE_SECONDS, self._expire, job)
        self._queue.append(job)
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._run())
        try:
            return await job.future
        finally:
            timer.cancel()

    def _expire(self, job: CommitJob) -> None:
        """End the wait of a caller."""
        where, problem = self._where.display_url, f"no response within {RESPONSE_SECONDS:.0f} seconds"
        if job.in_doubt:
            job.fail(StorageUnsure(where, problem))
        elif self._connection is None:
            job.fail(StorageUnreachable(where, problem))
        else:
            # There were too many before it.
            job.fail(StorageBusy(where))

    async def close(self) -> None:
        """Finish queued commits. After `CLOSING_SECONDS`, fail the rest."""
        where = self._where.display_url
        if self._task is not None:
            await asyncio.wait([self._task], timeout=CLOSING_SECONDS)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for job in (*self._running, *self._queue):
            in_doubt = StorageUnsure(where, "the workspace was closed during the write")
            job.fail(in_doubt if job.in_doubt else StorageClosed(where))
        self._queue.clear()
        if self._connection is not None:
            await asyncio.gather(self._connection.close(timeout=1), return_exceptions=True)

    async def _run(self) -> None:
        while jobs := self._next_jobs():
            self._running = jobs
            await self._commit(jobs)
            self._running = ()

    def _next_jobs(self) -> list[CommitJob]:
        """Return the jobs of the next batch. Those whose callers were cancelled are left out."""
        jobs: list[CommitJob] = []
        size = 0
        while self._queue and len(jobs) < MAX_BATCH and (not jobs or size < MAX_SIZE):
            job = self._queue.popleft()
            if job.is_waited_for:
                jobs.append(job)
                size += job.planned.size
        return jobs

    async def _commit(self, jobs: Sequence[CommitJob]) -> None:
        """Commit jobs together, again after each lost connection."""
        backoff = Backoff(min(job.since for job in jobs))
        problem: Exception
        while jobs := [job for job in jobs if job.is_waited_for]:
            try:
                self._deliver(jobs, await self._call(jobs))
                return
            except (ConnectionLost, StorageBusy) as error:
                if not backoff.exhausted:
                    await backoff.wait()
                    continue
                is_lost = isinstance(error, ConnectionLost)
                problem = StorageUnreachable(self._where.display_url, str(error)) if is_lost else error
            except StorageUnsure as error:
                problem = error
            except Exception as error:  # noqa: BLE001  # every waiting caller must get an outcome
                problem = error
                if len(jobs) > 1:
                    # The server has rejected one of them. Commit each on its own.
                    for job in jobs:
                        await self._commit([job])
                    return
            for job in jobs:
                job.fail(problem)
            return

    def _deliver(self, jobs: Sequence[CommitJob], made: Sequence[int]) -> None:
        require_current(made[0], self._where)
        first_seqs = made[2 : 2 + len(jobs)]
        if any(first_seqs):
            self._committed(made[1])
        end = 2 + len(jobs)
        for job, first_seq in zip(jobs, first_seqs, strict=True):
            start, end = end, end + len(job.planned.writes)
            job.deliver(first_seq, list(made[start:end]))

    async def _call(self, jobs: Sequence[CommitJob]) -> Sequence[int]:
        """Call the function, and return what it has made.

        Raises `ConnectionLost` if it has certainly made nothing and never will, `StorageUnsure` if that
        cannot be found out, and other errors if the server has rejected the call.
        """
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._where, writable=True, seconds=RECONNECT_SECONDS)
        connection = self._connection
        self._number += 1
        arguments = _arguments(jobs)
        _set_in_doubt(jobs, in_doubt=True)
        try:
            made: Sequence[int] | None = await connection.fetchval(
                self._call_sql, self._id, self._number, *self._lock, self._channel, NEWEST_SCHEMA, *arguments,
                timeout=CALL_SECONDS,
            )  # fmt: skip
        except (*DRIVER_ERRORS, TimeoutError) as error:
            problem: Exception = ConnectionLost("there was no response to the call")
            if not isinstance(error, TimeoutError):
                problem = translate_error(error, connection, self._where.display_url)
            if isinstance(problem, ConnectionLost):
                made = await self._settle()
            else:
                made = None
            if made is None:
                _set_in_doubt(jobs, in_doubt=False)
                raise problem from error
        assert made is not None
        return made

    async def _settle(self) -> Sequence[int] | None:
        """Return what the last call has made. If nothing, return None, and make sure that it never will.

        Raises `StorageUnsure` if the server does not respond.
        """
        backoff = Backoff()
        while True:
            self._drop_connection()
            try:
                self._connection = await connect(self._where, writable=True, seconds=RECONNECT_SECONDS)
                made: Sequence[int] | None = await self._connection.fetchval(
                    self._settle_sql, self._id, self._number, *self._lock, timeout=CALL_SECONDS
                )
            except (ConnectionLost, StorageError, TimeoutError, *DRIVER_ERRORS) as error:
                if backoff.exhausted:
                    self._drop_connection()
                    raise StorageUnsure(self._where.display_url, str(error)) from error
            else:
                return made
            await backoff.wait()

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


def _set_in_doubt(jobs: Sequence[CommitJob], *, in_doubt: bool) -> None:
    for job in jobs:
        job.in_doubt = in_doubt


def _arguments(jobs: Sequence[CommitJob]) -> list[Sequence[Any]]:
    """Return the arrays of the function for these jobs."""
    return [
        *columns_of([job.values for job in jobs], _JOB_VALUES),
        *columns_of([item for job in jobs for item in job.planned.projects.items()], 2),
        *columns_of([item for job in jobs for item in job.planned.contents.items()], 2),
        *columns_of([write for job in jobs for write in job.planned.writes], len(EncodedWrite._fields)),
    ]
