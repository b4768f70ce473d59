"""A connection that commits planned writes: several at once, in one call of a function, and never twice.

The function takes the writers' lock, and its statement is the whole transaction. So nobody waits for a
process that is cut off from the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import uuid4

from msgspec import Struct

from dittybag.domain.changes import Interface
from dittybag.domain.errors import StorageBusy, StorageError, StorageUnreachable, StorageUnsure
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

#: How long the function may take: longer than it waits for the lock.
CALL_SECONDS: Final = 5.0

_JOB_VALUES: Final = 7
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
        counts = len(planned.projects), len(planned.contents), len(planned.writes)
        return viewer_setting(self.viewer), self.actor, self.interface, planned.at, *counts


class CommitConnection:
    """Commits one batch at a time. For the server, it is a writer of its own."""

    def __init__(self, where: PostgresAddress, schema: str, committed: Callable[[int, int], None]) -> None:
        """`committed` is called with the first and the last `seq` of each commit with changes."""
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
        self._connection: PostgresConnection | None = None
        #: The jobs that are being committed.
        self.jobs: Sequence[CommitJob] = ()

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    async def close(self) -> None:
        if self._connection is not None:
            await asyncio.gather(self._connection.close(timeout=1), return_exceptions=True)

    async def commit(self, jobs: Sequence[CommitJob]) -> None:
        """Commit jobs together. Each gets its outcome."""
        self.jobs = jobs
        try:
            await self._commit(jobs)
        finally:
            self.jobs = _waited_for(jobs)

    async def _commit(self, jobs: Sequence[CommitJob]) -> None:
        """Commit jobs together, again after each lost connection."""
        backoff = Backoff(min(job.since for job in jobs))
        problem: Exception
        while jobs := _waited_for(jobs):
            try:
                connection = await self._connected()
                # Connecting takes time: some callers may have got the response that nothing was changed.
                if jobs := _waited_for(jobs):
                    self._deliver(jobs, await self._call(connection, jobs))
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
            self._committed(min(filter(None, first_seqs)), made[1])
        end = 2 + len(jobs)
        for job, first_seq in zip(jobs, first_seqs, strict=True):
            start, end = end, end + len(job.planned.writes)
            job.deliver(first_seq, list(made[start:end]))

    async def _connected(self) -> PostgresConnection:
        """Return the connection. Raises `ConnectionLost`."""
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._where, writable=True, seconds=RECONNECT_SECONDS)
        return self._connection

    async def _call(self, connection: PostgresConnection, jobs: Sequence[CommitJob]) -> Sequence[int]:
        """Call the function, and return what it has made.

        Raises `ConnectionLost` if it has certainly made nothing and never will, `StorageUnsure` if that
        cannot be found out, and other errors if the server has rejected the call.
        """
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


def _waited_for(jobs: Sequence[CommitJob]) -> list[CommitJob]:
    return [job for job in jobs if job.is_waited_for]


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
