"""A pool of child processes for untrusted text, which are replaced when they crash.

Clients take turns: a client with many slow jobs delays itself, not the others.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, CancelledError, Future, TimerHandle, get_running_loop
from collections import deque
from collections.abc import Callable, Hashable
from time import perf_counter
from typing import Any, Final

import msgspec
from msgspec import Struct

from dittybag.library.render.child_process import ChildProcess

#: An idle child is stopped after this time.
_IDLE_SECONDS: Final = 60.0
#: After this many failed starts in a row, all waiting jobs fail.
_MAX_STARTS: Final = 3
#: A worker whose last job took less than this gets several jobs, so that it need not wait for the next one.
_FAST_SECONDS: Final = 0.01
_FAST_DEPTH: Final = 8
#: The jobs that one client may have waiting: as many as it may have requests in flight, and their bytes.
MAX_WAITING_JOBS: Final = 1024
MAX_WAITING_BYTES: Final = 64 * 1024 * 1024


class WorkerCrashed(Exception):
    """The child process crashed while running the job, or could not be started."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


class TooManyJobs(Exception):
    """The client has as many jobs waiting as it may."""


_START_FAILED: Final = "the child process could not be started"


class _Job(Struct, eq=False):
    frame: bytes
    result: Future[bytes]
    client: Hashable = None


class Worker:
    """Runs jobs one after the other, in one child process at a time."""

    def __init__(
        self, role: str, on_idle: Callable[[], object] = lambda: None, *, keeps_child: bool = False
    ) -> None:
        """`on_idle` is called when there is room for another job.

        `keeps_child`: an idle child is not stopped.
        """
        self._role = role
        self._on_idle = on_idle
        self._keeps_child = keeps_child
        self._began = 0.0
        #: The number of jobs that the pool may give to this worker.
        self.capacity = 1
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

    def works_for(self, client: Hashable) -> bool:
        for job in self._jobs:  # noqa: SIM110  # a generator takes twice as long
            if job.client == client:
                return True
        return False

    def submit(self, frame: bytes) -> Future[bytes]:
        """Submit a job; the future fails with `WorkerCrashed` if the child crashes."""
        job = _Job(frame, get_running_loop().create_future())
        self.run(job)
        return job.result

    def run(self, job: _Job) -> None:
        """Run a job after those that were submitted before."""
        if not self._jobs:
            self._began = perf_counter()
        self._jobs.append(job)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if self._child is None:
            self._start(get_running_loop())
        else:
            self._child.send(job.frame, is_first=len(self._jobs) == 1)

    def start(self) -> None:
        """Start the child before its first job."""
        if self._child is None:
            self._start(get_running_loop())

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
            self._on_idle()
            return
        for number, job in enumerate(self._jobs):
            self._child.send(job.frame, is_first=number == 0)

    def on_result(self, line: bytes) -> bool:
        """Called by the child for every result; returns whether more jobs are waiting."""
        self._failed_starts = 0
        now = perf_counter()
        self.capacity = _FAST_DEPTH if now - self._began < _FAST_SECONDS else 1
        self._began = now
        job = self._jobs.popleft()
        if not job.result.done():
            job.result.set_result(line)
        self._on_idle()
        if self._jobs:
            return True
        if not self._keeps_child:
            self._idle_timer = get_running_loop().call_later(_IDLE_SECONDS, self.close)
        return False

    def on_exit(self, child: ChildProcess, problem: str, *, ready: bool) -> None:
        """Called by the child once, after it has exited."""
        if child is not self._child:
            return
        self._child = None
        self.capacity = 1
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
        self._on_idle()

    def _fail_all(self) -> None:
        """Fail all waiting jobs because no child can be started. The next job tries again."""
        self._failed_starts = 0
        jobs, self._jobs = self._jobs, deque()
        for job in jobs:
            self._fail(job, _START_FAILED)

    def _fail(self, job: _Job, problem: str) -> None:
        if not job.result.done():
            job.result.set_exception(WorkerCrashed(problem))


class _Queue:
    """The waiting jobs of one client."""

    def __init__(self) -> None:
        self.jobs: deque[_Job] = deque()
        self.bytes = 0

    def append(self, job: _Job) -> None:
        self.jobs.append(job)
        self.bytes += len(job.frame)

    def take(self) -> _Job:
        job = self.jobs.popleft()
        self.bytes -= len(job.frame)
        return job

    def remove(self, job: _Job) -> None:
        self.jobs.remove(job)
        self.bytes -= len(job.frame)

    def is_full(self, frame: bytes) -> bool:
        """Whether another job exceeds what a client may have waiting. One job may always wait."""
        return len(self.jobs) >= MAX_WAITING_JOBS or (
            bool(self.jobs) and self.bytes + len(frame) > MAX_WAITING_BYTES
        )


class WorkerPool:
    """Several workers of one role, so that a slow job does not block the others."""

    def __init__(
        self, role: str, size: int, *, per_client: int | None = None, keeps_child: bool = False
    ) -> None:
        """`per_client`: the number of workers that one client can use at a time (default: all).

        `keeps_child`: one child is not stopped when it is idle.
        """
        self._workers = [
            Worker(role, self._on_idle, keeps_child=keeps_child and number == 0) for number in range(size)
        ]
        self._per_client = per_client or size
        #: The waiting jobs of each client, in the order of their turns.
        self._queues: dict[Hashable, _Queue] = {}
        self._is_scheduled = False

    async def submit(self, job: dict[str, Any] | Struct, client: Hashable = None) -> bytes:
        """Run a job of a client and return its result. Raises `WorkerCrashed` and `TooManyJobs`.

        The jobs of `None`, Dittybag itself, are not limited in number.
        """
        pending = _Job(msgspec.json.encode(job) + b"\n", get_running_loop().create_future(), client)
        if not self._queues and (worker := self._free_worker(client)) is not None:
            worker.run(pending)
            return await pending.result
        queue = self._queues.get(client) or _Queue()
        if client is not None and queue.is_full(pending.frame):
            raise TooManyJobs
        self._queues[client] = queue
        queue.append(pending)
        self._run_waiting()
        try:
            return await pending.result
        except CancelledError:
            self._withdraw(client, pending)
            raise

    def _withdraw(self, client: Hashable, job: _Job) -> None:
        """Remove a job whose caller no longer waits, unless it had its turn."""
        queue = self._queues.get(client)
        if queue is not None and job in queue.jobs:
            queue.remove(job)
            if not queue.jobs:
                del self._queues[client]

    def _free_worker(self, client: Hashable) -> Worker | None:
        """The worker for the next job of a client; None if all are busy or it uses too many.

        It is the first of the least busy ones, so that further children are only started when needed.
        """
        used = [worker for worker in self._workers if worker.waiting and worker.works_for(client)]
        allowed = used if len(used) >= self._per_client else self._workers
        best = min(allowed, key=lambda worker: worker.waiting)
        return best if best.waiting < best.capacity else None

    def _on_idle(self) -> None:
        if self._queues and not self._is_scheduled:
            # Not at once: a result may arrive while its job is being sent, and more results may follow.
            self._is_scheduled = True
            get_running_loop().call_soon(self._run_waiting)

    def _run_waiting(self) -> None:
        """Give free workers to the clients that wait, in turn."""
        self._is_scheduled = False
        while any(self._run_next(client) for client in list(self._queues)):
            pass

    def _run_next(self, client: Hashable) -> bool:
        """Run the next job of a client if a worker is free for it."""
        worker = self._free_worker(client)
        if worker is None:
            return False
        queue = self._queues.pop(client)
        job = queue.take()
        if queue.jobs:
            # The next turn is after those of all others.
            self._queues[client] = queue
        worker.run(job)
        return True

    def start(self) -> None:
        """Start a child before the first job."""
        self._workers[0].start()

    @property
    def crashes(self) -> int:
        """Number of children that crashed while running a job."""
        return sum(worker.crashes for worker in self._workers)

    def close(self) -> None:
        """Stop all child processes."""
        for queue in self._queues.values():
            for job in queue.jobs:
                job.result.cancel()
        self._queues.clear()
        for worker in self._workers:
            worker.close()
