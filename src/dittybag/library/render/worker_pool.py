"""Child processes that work on foreign text, and are replaced when they die of it."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future, TimerHandle, get_running_loop
from collections import deque
from typing import Any, Final

import msgspec
from msgspec import Struct

from dittybag.library.render.child_process import ChildProcess

#: A child without work is not kept.
_IDLE_SECONDS: Final = 60.0
#: After so many children that ended before they were ready, nobody need try again for now.
_MAX_STARTS: Final = 3


class WorkerCrashed(Exception):
    """The child that did the job has died of it, or could not be started."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


_NO_START: Final = "the process for it could not be started"


class _Job(Struct, eq=False):
    frame: bytes
    answer: Future[bytes]


class Worker:
    """One child process at a time, that does one job after the other."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._jobs: deque[_Job] = deque()
        self._child: ChildProcess | None = None
        self._failed_starts = 0
        #: How many children have died of a job.
        self.deaths = 0
        self._rest: TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """How many jobs it has."""
        return len(self._jobs)

    def ask(self, frame: bytes) -> Future[bytes]:
        """The answer to a job, which fails with `WorkerCrashed` if the child does not survive it."""
        loop = get_running_loop()
        job = _Job(frame, loop.create_future())
        self._jobs.append(job)
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        if self._child is None:
            self._start(loop)
        else:
            self._child.send(frame, alone=len(self._jobs) == 1)
        return job.answer

    def close(self) -> None:
        """End the child; what it was doing fails."""
        for job in self._jobs:
            job.answer.cancel()
        self._jobs.clear()
        if self._rest is not None:
            self._rest.cancel()
        if self._child is not None:
            child, self._child = self._child, None
            child.end()

    def _start(self, loop: AbstractEventLoop) -> None:
        try:
            self._child = ChildProcess(self, self._role, loop)
        except OSError:
            self._fail_all()
            return
        for number, job in enumerate(self._jobs):
            self._child.send(job.frame, alone=number == 0)

    def answered(self, line: bytes) -> bool:
        """Called by the child, for every answer; whether there is more to do."""
        self._failed_starts = 0
        job = self._jobs.popleft()
        if not job.answer.done():
            job.answer.set_result(line)
        if self._jobs:
            return True
        self._rest = get_running_loop().call_later(_IDLE_SECONDS, self.close)
        return False

    def died(self, child: ChildProcess, problem: str, *, ready: bool) -> None:
        """Called by the child, once, when it has ended."""
        if child is not self._child:
            return
        self._child = None
        if ready:
            self.deaths += 1
            self._failed_starts = 0
            if self._jobs:
                # Jobs are done in order: it was the first one.
                self._fail(self._jobs.popleft(), problem)
        else:
            self._failed_starts += 1
            if self._failed_starts >= _MAX_STARTS:
                self._fail_all()
        if self._jobs:
            self._start(get_running_loop())

    def _fail_all(self) -> None:
        """There is no process, and it is nobody's fault; the next job may try again."""
        self._failed_starts = 0
        jobs, self._jobs = self._jobs, deque()
        for job in jobs:
            self._fail(job, _NO_START)

    def _fail(self, job: _Job, problem: str) -> None:
        if not job.answer.done():
            job.answer.set_exception(WorkerCrashed(problem))


class WorkerPool:
    """Several workers of one role: one that is stuck does not keep the others' jobs waiting."""

    def __init__(self, role: str, size: int) -> None:
        self._workers = [Worker(role) for _ in range(size)]

    async def ask(self, job: dict[str, Any]) -> bytes:
        """The answer to a job. Raises `WorkerCrashed`."""
        frame = msgspec.json.encode(job) + b"\n"
        # The first of those with the least to do: the others need not even be started.
        return await min(self._workers, key=lambda worker: worker.waiting).ask(frame)

    @property
    def deaths(self) -> int:
        """How many children have died of a job."""
        return sum(worker.deaths for worker in self._workers)

    def close(self) -> None:
        """End all children."""
        for worker in self._workers:
            worker.close()
