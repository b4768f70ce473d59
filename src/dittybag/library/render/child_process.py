"""A child process that runs jobs from a socket, and may crash on any of them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from asyncio import AbstractEventLoop, TimerHandle
from time import perf_counter
from typing import Final, Protocol

from dittybag.library.render.process_memory import memory_of
from dittybag.library.render.resource_limits import (
    DEADLINE_SECONDS,
    MEMORY_BYTES,
    READY_UNLIMITED,
    TOO_LONG,
)

#: A child that is not ready by then has failed to start.
_START_SECONDS: Final = 10.0
#: A child ends itself at the deadline. If that fails, it is killed a little later.
_GRACE_SECONDS: Final = 0.15
#: A killed child normally exits immediately.
_EXIT_SECONDS: Final = 0.5
#: How often to check the memory of a running job, where the system does not limit it.
_MEMORY_SECONDS: Final = 0.005
#: How long to poll for a result before returning to the event loop, as for requests (decision 32) ...
_SPIN_SECONDS: Final = 0.0002
#: ... and for how many jobs polling is skipped after a job that took longer.
_SPIN_PAUSE_JOBS: Final = 64
#: The C library would map and unmap the memory of a larger buffer for every read.
_READ_BYTES: Final = 64 * 1024
#: A child never sends a longer result, unless it is compromised.
_MAX_RESULT_BYTES: Final = 32 * 1024 * 1024

_TOO_MANY_RESOURCES: Final = "it needs too much memory or nesting"

_PROGRAM: Final = """\
import sys
sys.path[:] = sys.argv[2:]
from dittybag.library.render.child_main import main
main(sys.argv[1])
"""


class ChildOwner(Protocol):
    """The object that is notified about results and the exit of a child."""

    def on_result(self, line: bytes) -> bool:
        """Called for every result, in the order of the jobs. Returns whether more jobs are waiting."""
        ...

    def on_exit(self, child: ChildProcess, problem: str, *, ready: bool) -> None:
        """Called once, after the child has exited. `ready`: it had started successfully."""
        ...


class ChildProcess:
    """A process and the socket to it."""

    def __init__(self, owner: ChildOwner, role: str, loop: AbstractEventLoop) -> None:
        """Start the process. Raises `OSError`."""
        self._owner = owner
        self._loop = loop
        self._ready = False
        self._overdue = False
        self._busy = False
        self._spin_pause = 0
        #: The memory at which the child is killed; `None` if the system limits it.
        self._max_memory: int | None = None
        self._memory_timer: TimerHandle | None = None
        self._received = bytearray()
        self._unsent = bytearray()
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
        self._socket = ours
        self._poll = select.poll()
        self._poll.register(ours, select.POLLIN)
        loop.add_reader(ours, self._read)
        self._timer = loop.call_later(_START_SECONDS, self._on_timeout)

    def send(self, frame: bytes, *, is_first: bool) -> None:
        """Send a job. `is_first`: no other job is running, so the child starts it immediately."""
        self._unsent += frame
        self._write()
        if is_first:
            self._busy = True
            if self._ready:
                self._await_result()

    def _write(self) -> None:
        try:
            del self._unsent[: self._socket.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            # The child has exited, which `_read` handles.
            self._unsent.clear()
        if self._unsent:
            self._loop.add_writer(self._socket, self._write)
        else:
            self._loop.remove_writer(self._socket)

    def _await_result(self) -> None:
        self._start_timers()
        if self._spin_pause:
            self._spin_pause -= 1
            return
        # Sleeping and waking up takes as long as a typical job.
        until = perf_counter() + _SPIN_SECONDS
        while perf_counter() < until:
            if self._poll.poll(0):
                self._read()
                return
        self._spin_pause = _SPIN_PAUSE_JOBS

    def _read(self) -> None:
        try:
            data = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._disconnect()
            return
        self._received += data
        if b"\n" in data:
            self._handle_results()
        elif len(self._received) > _MAX_RESULT_BYTES:
            self.kill()

    def _handle_results(self) -> None:
        *lines, rest = bytes(self._received).split(b"\n")
        self._received = bytearray(rest)
        for line in lines:
            if not self._ready:
                self._ready = True
                if line == READY_UNLIMITED.strip() and (used := memory_of(self._process.pid)) is not None:
                    self._max_memory = used + MEMORY_BYTES
            else:
                self._busy = self._owner.on_result(line)
        self._timer.cancel()
        if self._busy:
            self._start_timers()

    def _start_timers(self) -> None:
        """Watch the job that starts now."""
        self._timer.cancel()
        self._timer = self._loop.call_later(DEADLINE_SECONDS + _GRACE_SECONDS, self._on_timeout)
        if self._max_memory is not None and self._memory_timer is None:
            self._memory_timer = self._loop.call_later(_MEMORY_SECONDS, self._check_memory)

    def _check_memory(self) -> None:
        """Kill the child if it uses too much memory, and check again soon while it is busy."""
        self._memory_timer = None
        if not self._busy or self._max_memory is None or self._socket.fileno() < 0:
            return
        if (memory_of(self._process.pid) or 0) > self._max_memory:
            self.kill()
        else:
            self._memory_timer = self._loop.call_later(_MEMORY_SECONDS, self._check_memory)

    def _disconnect(self) -> None:
        if self._socket.fileno() >= 0:
            self._timer.cancel()
            if self._memory_timer is not None:
                self._memory_timer.cancel()
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
            self._reap()

    def _reap(self) -> None:
        if self._process.poll() is None:
            # It is about to exit: it has closed its socket.
            self._loop.call_later(0.001, self._reap)
            return
        late = self._overdue or self._process.returncode == -signal.SIGALRM
        self._owner.on_exit(self, TOO_LONG if late else _TOO_MANY_RESOURCES, ready=self._ready)

    def _on_timeout(self) -> None:
        self._overdue = True
        self.kill()

    def terminate(self) -> None:
        """Kill the process and wait for its exit, without the event loop, which may be closed."""
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_SECONDS)

    def kill(self) -> None:
        self._process.kill()
        self._disconnect()


def _command(role: str) -> list[str]:
    # Without `site`, which would search for packages again.
    return [sys.executable, "-I", "-S", "-c", _PROGRAM, role, *filter(None, sys.path)]
