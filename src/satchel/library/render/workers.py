"""Child processes that work on foreign text, and are replaced when they die of it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from asyncio import AbstractEventLoop, Future, Protocol, TimerHandle, Transport, get_running_loop
from collections import deque
from typing import Any, Final

import msgspec
from msgspec import Struct

from satchel.library.render.confinement import DEADLINE_SECONDS

#: A child that has not said hello by then never will.
_START_SECONDS: Final = 10.0
#: A child ends itself at the deadline. If it cannot, it is killed a little later.
_GRACE_SECONDS: Final = 0.15
#: A child that was killed is gone at once, unless the machine is in trouble.
_END_SECONDS: Final = 0.5
#: A child without work is not kept.
_IDLE_SECONDS: Final = 60.0
#: After so many children that ended before they were ready, nobody need try again for now.
_MAX_STARTS: Final = 3
#: No honest answer is longer.
_ANSWER_BYTES: Final = 32 * 1024 * 1024


class WorkerDied(Exception):
    """The child that did the job has died of it, or could not be started."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


_PROGRAM: Final = """\
import sys
sys.path[:] = sys.argv[2:]
from satchel.library.render.child import main
main(sys.argv[1])
"""

_TOO_LONG: Final = f"it takes longer than {1000 * DEADLINE_SECONDS:.0f} ms"
_TOO_MUCH: Final = "it needs more memory or nesting than it may have"
_NO_START: Final = "the process for it could not be started"


class _Job(Struct, eq=False):
    frame: bytes
    answer: Future[bytes]


class Worker:
    """One child process at a time, that does one job after the other."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._jobs: deque[_Job] = deque()
        self._child: _Child | None = None
        self._failed_starts = 0
        self._rest: TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """How many jobs it has."""
        return len(self._jobs)

    def ask(self, frame: bytes) -> Future[bytes]:
        """The answer to a job, which fails with `WorkerDied` if the child does not survive it."""
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
            self._child = _Child(self, self._role, loop)
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

    def died(self, child: _Child, problem: str, *, ready: bool) -> None:
        """Called by the child, once, when it has ended."""
        if child is not self._child:
            return
        self._child = None
        if ready:
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
            job.answer.set_exception(WorkerDied(problem))


class _Child(Protocol):
    """A process and the wire to it."""

    def __init__(self, owner: Worker, role: str, loop: AbstractEventLoop) -> None:
        """Raises `OSError` if there can be no process."""
        self._owner = owner
        self._loop = loop
        self._ready = False
        self._overdue = False
        self._busy = False
        self._buffer = bytearray()
        self._unsent: list[bytes] = []
        self._transport: Transport | None = None
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(  # noqa: S603  # our own program
                _command(role),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd=os.path.abspath(os.sep),
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)  # noqa: FBT003
        self._wire = ours
        self._timer = loop.call_later(_START_SECONDS, self._give_up)
        self._connecting = loop.create_task(self._connect())

    async def _connect(self) -> None:
        await self._loop.create_connection(lambda: self, sock=self._wire)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.writelines(self._unsent)
        self._unsent.clear()

    def send(self, frame: bytes, *, alone: bool) -> None:
        """Send a job. `alone`: it begins at once, because there is no other before it."""
        if self._transport is None:
            self._unsent.append(frame)
        else:
            self._transport.write(frame)
        if alone:
            self._busy = True
            if self._ready:
                self._await_answer()

    def _await_answer(self) -> None:
        self._timer.cancel()
        self._timer = self._loop.call_later(DEADLINE_SECONDS + _GRACE_SECONDS, self._give_up)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if b"\n" not in data:
            if len(self._buffer) > _ANSWER_BYTES:
                self.kill()
            return
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer = bytearray(rest)
        for line in lines:
            if not self._ready:
                self._ready = True
            else:
                self._busy = self._owner.answered(line)
        if self._busy:
            self._await_answer()
        else:
            self._timer.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._reap()

    def _reap(self) -> None:
        if self._process.poll() is None:
            # It is about to end: its end of the wire is closed.
            self._loop.call_later(0.001, self._reap)
            return
        late = self._overdue or self._process.returncode == -getattr(signal, "SIGALRM", 14)
        self._owner.died(self, _TOO_LONG if late else _TOO_MUCH, ready=self._ready)

    def _give_up(self) -> None:
        self._overdue = True
        self.kill()

    def end(self) -> None:
        """Kill it, and wait for that: there may be no event loop any more that could do so."""
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)

    def kill(self) -> None:
        self._timer.cancel()
        self._process.kill()
        if self._transport is not None:
            self._transport.abort()
        else:
            self._connecting.cancel()
            self._wire.close()
            self._reap()


class Crew:
    """Several workers of one role: one that is stuck does not keep the others' jobs waiting."""

    def __init__(self, role: str, size: int) -> None:
        self._workers = [Worker(role) for _ in range(size)]

    async def ask(self, job: dict[str, Any]) -> bytes:
        """The answer to a job. Raises `WorkerDied`."""
        frame = msgspec.json.encode(job) + b"\n"
        # The first of those with the least to do: the others need not even be started.
        return await min(self._workers, key=lambda worker: worker.waiting).ask(frame)

    def close(self) -> None:
        """End all children."""
        for worker in self._workers:
            worker.close()


def _command(role: str) -> list[str]:
    # Without `site`: it would look for packages again that have been found here already.
    return [sys.executable, "-I", "-S", "-c", _PROGRAM, role, *filter(None, sys.path)]
