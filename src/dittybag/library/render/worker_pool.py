"""A pool of child processes for untrusted text, which are replaced when they crash."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future, TimerHandle, get_running_loop
from collections import deque
from typing import Any, Final

import msgspec
from msgspec import Struct

from dittybag.library.render.child_process import ChildProcess

#: An idle child is stopped after this time.
_IDLE_SECONDS: Final = 60.0
#: After this many failed starts in a row, all waiting jobs fail.
_MAX_STARTS: Final = 3


class WorkerCrashed(Exception):
    """The child process crashed while running the job, or could not be started."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


_START_FAILED: Final = "the child process could not be started"


class _Job(Struct, eq=False):
    frame: bytes
    result: Future[bytes]


class Worker:
    """Runs jobs one after the other, in one child process at a time."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._jobs: deque[_Job] = deque()
        self._child: ChildProcess | None = None
        self._failed_starts = 0
        #: Number of children that crashed while running a job.
        self.crashes = 0
        self._idle_timer: TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """The number of unfinished jobs."""
        return len(self._jobs)

    def submit(self, frame: bytes) -> Future[bytes]:
        """Submit a job; the future fails with `WorkerCrashed` if the child crashes."""
        loop = get_running_loop()
        job = _Job(frame, loop.create_future())
        self._jobs.append(job)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if self._child is None:
            self._start(loop)
        else:
            self._child.send(frame, is_first=len(self._jobs) == 1)
        return job.result

    def close(self) -> None:
        """Stop the child and cancel its jobs."""
        for job in self._jobs:
            job.result.cancel()
        self._jobs.clear()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._child is not None:
            child, self._child = self._child, None
            child.terminate()

    def _start(self, loop: AbstractEventLoop) -> None:
        try:
            self._child = ChildProcess(self, self._role, loop)
        except OSError:
            self._fail_all()
            return
        for number, job in enumerate(self._jobs):
            self._child.send(job.frame, is_first=number == 0)

    def on_result(self, line: bytes) -> bool:
        """Called by the child for every result; returns whether more jobs are waiting."""
        self._failed_starts = 0
        job = self._jobs.popleft()
        if not job.result.done():
            job.result.set_result(line)
        if self._jobs:
            return True
        self._idle_timer = get_running_loop().call_later(_IDLE_SECONDS, self.close)
        return False

    def on_exit(self, child: ChildProcess, problem: str, *, ready: bool) -> None:
        """Called by the child once, after it has exited."""
        if child is not self._child:
            return
        self._child = None
        if ready:
            self.crashes += 1
            self._failed_starts = 0
            if self._jobs:
                # Jobs run in order, so the first one caused the crash.
                self._fail(self._jobs.popleft(), problem)
        else:
            self._failed_starts += 1
            if self._failed_starts >= _MAX_STARTS:
                self._fail_all()
        if self._jobs:
            self._start(get_running_loop())

    def _fail_all(self) -> None:
        """Fail all waiting jobs because no child can be started. The next job tries again."""
        self._failed_starts = 0
        jobs, self._jobs = self._jobs, deque()
        for job in jobs:
            self._fail(job, _START_FAILED)

    def _fail(self, job: _Job, problem: str) -> None:
        if not job.result.done():
            job.result.set_exception(WorkerCrashed(problem))


class WorkerPool:
    """Several workers of one role, so that a slow job does not block the others."""

    def __init__(self, role: str, size: int) -> None:
        self._workers = [Worker(role) for _ in range(size)]

    async def submit(self, job: dict[str, Any]) -> bytes:
        """Run a job and return its result. Raises `WorkerCrashed`."""
        frame = msgspec.json.encode(job) + b"\n"
        # The first of the least busy workers, so that further children are only started when needed.
        return await min(self._workers, key=lambda worker: worker.waiting).submit(frame)

    @property
    def crashes(self) -> int:
        """Number of children that crashed while running a job."""
        return sum(worker.crashes for worker in self._workers)

    def close(self) -> None:
        """Stop all child processes."""
        for worker in self._workers:
            worker.close()
