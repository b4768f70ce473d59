"""Collects planned writes, and decides which of them are committed together, and when."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from dittybag.domain.errors import StorageBusy, StorageClosed, StorageUnreachable, StorageUnsure
from dittybag.storage.postgres.checked_transaction import CommitResult
from dittybag.storage.postgres.commit_connection import CommitConnection, CommitJob
from dittybag.storage.postgres.postgres_connections import PostgresAddress

#: At most this many use cases, and about this many characters, are committed together.
MAX_BATCH: Final = 64
MAX_SIZE: Final = 4 << 20

#: After this time a caller gets the outcome, even if it is that nobody knows.
RESPONSE_SECONDS: Final = 10.0

#: How long closing waits for queued commits.
CLOSING_SECONDS: Final = 5.0

#: Where other processes write, too, a batch is sent after this part of the time that the last one took, but
#: after at most this many seconds.
_PAUSE_RATIO: Final = 0.25
_LONGEST_PAUSE: Final = 0.01


class Committer:
    """Commits in the order of arrival.

    It has two connections. While one batch is committed, the next one is sent, as soon as it is as large, and
    waits on the server for the lock. So the server does not wait for this process between two batches.

    Where other processes write, too, the server has batches of theirs to go on with, and more but smaller
    batches would cost all of them time. Then one connection is used, and each batch waits a little for more.
    """

    def __init__(self, where: PostgresAddress, schema: str, committed: Callable[[int, int], None]) -> None:
        """`committed` is called with the first and the last `seq` of each commit with changes."""
        self._where = where
        self._committed = committed
        self._queue: deque[CommitJob] = deque()
        self._connections = [CommitConnection(where, schema, self._note_commit) for _ in range(2)]
        self._tasks: dict[CommitConnection, asyncio.Task[None]] = {}
        #: The first and the last `seq` of the last commits.
        self._last_commits: deque[tuple[int, int]] = deque(maxlen=3)
        #: Whether another process has committed something between the last commits of this one.
        self._others_write = False
        #: When the next batch may be sent, on the clock of the event loop.
        self._pause_end = 0.0
        self._pause: asyncio.TimerHandle | None = None

    async def commit(self, job: CommitJob) -> CommitResult:
        """Commit. Raises `CheckFailed` if something that was read no longer holds."""
        timer = asyncio.get_running_loop().call_at(job.since + RESPONSE_SECONDS, self._expire, job)
        self._queue.append(job)
        self._start_batches()
        try:
            return await job.future
        finally:
            timer.cancel()

    def _expire(self, job: CommitJob) -> None:
        """End the wait of a caller."""
        where, problem = self._where.display_url, f"no response within {RESPONSE_SECONDS:.0f} seconds"
        if job.in_doubt:
            job.fail(StorageUnsure(where, problem))
        elif not any(connection.is_connected for connection in self._connections):
            job.fail(StorageUnreachable(where, problem))
        else:
            # There were too many before it.
            job.fail(StorageBusy(where))

    async def close(self) -> None:
        """Finish queued commits. After `CLOSING_SECONDS`, fail the rest."""
        where = self._where.display_url
        loop = asyncio.get_running_loop()
        deadline = loop.time() + CLOSING_SECONDS
        while self._tasks and (left := deadline - loop.time()) > 0:
            await asyncio.wait(self._tasks.values(), timeout=left)
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for job in (*(job for connection in self._connections for job in connection.jobs), *self._queue):
            in_doubt = StorageUnsure(where, "the workspace was closed during the write")
            job.fail(in_doubt if job.in_doubt else StorageClosed(where))
        self._queue.clear()
        if self._pause is not None:
            self._pause.cancel()
        await asyncio.gather(*(connection.close() for connection in self._connections))

    # Batches

    def _start_batches(self) -> None:
        for connection in self._connections:
            if connection not in self._tasks and self._may_send(connection):
                task = asyncio.get_running_loop().create_task(self._send_batches(connection))
                self._tasks[connection] = task

    async def _send_batches(self, connection: CommitConnection) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._may_send(connection) and (jobs := self._next_jobs()):
                since = loop.time()
                await connection.commit(jobs)
                now = loop.time()
                # A single client would only wait longer.
                pause = 0.0 if len(jobs) == 1 else min((now - since) * _PAUSE_RATIO, _LONGEST_PAUSE)
                self._pause_end = now + pause
        finally:
            del self._tasks[connection]

    def _may_send(self, connection: CommitConnection) -> bool:
        """Whether the queued jobs are to be sent now."""
        under_way = sum(len(other.jobs) for other in self._tasks if other is not connection)
        if under_way:
            return not self._others_write and under_way <= len(self._queue)
        loop = asyncio.get_running_loop()
        if not self._others_write or loop.time() >= self._pause_end:
            return bool(self._queue)
        if self._queue and self._pause is None:
            self._pause = loop.call_at(self._pause_end, self._end_pause)
        return False

    def _end_pause(self) -> None:
        self._pause = None
        self._pause_end = 0.0
        self._start_batches()

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

    def _note_commit(self, first_seq: int, last_seq: int) -> None:
        # The responses on two connections may be read in another order.
        self._others_write = not any(
            first_seq == last + 1 or last_seq + 1 == first for first, last in self._last_commits
        )
        self._last_commits.append((first_seq, last_seq))
        self._committed(first_seq, last_seq)
