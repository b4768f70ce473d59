"""A child process that does jobs, one a line, and may die of any of them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from asyncio import AbstractEventLoop
from time import perf_counter
from typing import Final, Protocol

from dittybag.library.render.resource_limits import DEADLINE_SECONDS, TOO_LONG

#: A child that has not said hello by then never will.
_START_SECONDS: Final = 10.0
#: A child ends itself at the deadline. If it cannot, it is killed a little later.
_GRACE_SECONDS: Final = 0.15
#: A child that was killed is gone at once, unless the machine is in trouble.
_END_SECONDS: Final = 0.5
#: How long to look for an answer before the event loop gets its turn, as for requests (decision 3) ...
_MOMENT_SECONDS: Final = 0.0002
#: ... and how many jobs are not waited for after one that took longer.
_RELUCTANCE: Final = 64
_READ_BYTES: Final = 256 * 1024
#: No honest answer is longer.
_ANSWER_BYTES: Final = 32 * 1024 * 1024

_TOO_MUCH: Final = "it needs more memory or nesting than it may have"

_PROGRAM: Final = """\
import sys
sys.path[:] = sys.argv[2:]
from dittybag.library.render.child_main import main
main(sys.argv[1])
"""


class ChildOwner(Protocol):
    """Whose child it is."""

    def answered(self, line: bytes) -> bool:
        """Called for every answer, in the order of the jobs; whether there is more to do."""
        ...

    def died(self, child: ChildProcess, problem: str, *, ready: bool) -> None:
        """Called once, when it has ended. `ready`: it had begun to work."""
        ...


class ChildProcess:
    """A process and the wire to it."""

    def __init__(self, owner: ChildOwner, role: str, loop: AbstractEventLoop) -> None:
        """Raises `OSError` if there can be no process."""
        self._owner = owner
        self._loop = loop
        self._ready = False
        self._overdue = False
        self._busy = False
        self._reluctance = 0
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
        self._wire = ours
        self._poll = select.poll()
        self._poll.register(ours, select.POLLIN)
        loop.add_reader(ours, self._read)
        self._timer = loop.call_later(_START_SECONDS, self._give_up)

    def send(self, frame: bytes, *, alone: bool) -> None:
        """Send a job. `alone`: it begins at once, because there is no other before it."""
        self._unsent += frame
        self._write()
        if alone:
            self._busy = True
            if self._ready:
                self._await_answer()

    def _write(self) -> None:
        try:
            del self._unsent[: self._wire.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            # It has ended, which the reader finds out too.
            self._unsent.clear()
        if self._unsent:
            self._loop.add_writer(self._wire, self._write)
        else:
            self._loop.remove_writer(self._wire)

    def _await_answer(self) -> None:
        self._timer.cancel()
        self._timer = self._loop.call_later(DEADLINE_SECONDS + _GRACE_SECONDS, self._give_up)
        if self._reluctance:
            self._reluctance -= 1
            return
        # To fall asleep and to be woken takes as long as an ordinary job.
        until = perf_counter() + _MOMENT_SECONDS
        while perf_counter() < until:
            if self._poll.poll(0):
                self._read()
                return
        self._reluctance = _RELUCTANCE

    def _read(self) -> None:
        try:
            data = self._wire.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._hang_up()
            return
        self._received += data
        if b"\n" in data:
            self._take_answers()
        elif len(self._received) > _ANSWER_BYTES:
            self.kill()

    def _take_answers(self) -> None:
        *lines, rest = bytes(self._received).split(b"\n")
        self._received = bytearray(rest)
        for line in lines:
            if not self._ready:
                self._ready = True
            else:
                self._busy = self._owner.answered(line)
        self._timer.cancel()
        if self._busy:
            self._timer = self._loop.call_later(DEADLINE_SECONDS + _GRACE_SECONDS, self._give_up)

    def _hang_up(self) -> None:
        if self._wire.fileno() >= 0:
            self._timer.cancel()
            self._loop.remove_reader(self._wire)
            self._loop.remove_writer(self._wire)
            self._wire.close()
            self._reap()

    def _reap(self) -> None:
        if self._process.poll() is None:
            # It is about to end: its end of the wire is closed.
            self._loop.call_later(0.001, self._reap)
            return
        late = self._overdue or self._process.returncode == -getattr(signal, "SIGALRM", 14)
        self._owner.died(self, TOO_LONG if late else _TOO_MUCH, ready=self._ready)

    def _give_up(self) -> None:
        self._overdue = True
        self.kill()

    def end(self) -> None:
        """Kill it, and wait for that: there may be no event loop any more that could do so."""
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)

    def kill(self) -> None:
        self._process.kill()
        self._hang_up()


def _command(role: str) -> list[str]:
    # Without `site`: it would look for packages again that have been found here already.
    return [sys.executable, "-I", "-S", "-c", _PROGRAM, role, *filter(None, sys.path)]
