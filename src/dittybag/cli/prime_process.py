"""Runs `dittybag prime` in a child process, so that no failure of it reaches the client that waits for it."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Sequence
from time import monotonic, time_ns
from typing import Final

#: In seconds. A hook that takes longer than this is in the way.
_DEADLINE: Final = 1.0
#: In whole seconds, and later than the deadline: when the child process ends if nobody is left to kill it.
_CHILD_SECONDS: Final = 2
#: More output than this is a failure: a pack of the largest budget is smaller.
_MAX_OUTPUT: Final = 4 * 1024 * 1024
#: What a pipe that is ready takes without blocking: 4096 bytes on Linux, 512 on macOS.
_PIPE_BYTES: Final = select.PIPE_BUF
_LOG: Final = "prime.log"
_MAX_LOG_BYTES: Final = 64 * 1024
_MAX_REASON: Final = 500


def run(arguments: Sequence[str], run_command: Callable[[], int]) -> int:
    """Print the output of the command if it succeeds in time, else nothing. Returns 0."""
    deadline = monotonic() + _DEADLINE
    try:
        output, reason = _run_child(run_command, deadline)
        if reason is None:
            _write(output, deadline)
    except BaseException as error:  # noqa: BLE001  # nothing may stop the client
        reason = f"{type(error).__name__}: {error}"
    if reason is not None:
        _report(reason, is_shown="--verbose" in arguments)
    return 0


def _run_child(run_command: Callable[[], int], deadline: float) -> tuple[bytes, str | None]:
    """Return the output of the command, and why it failed, if it did."""
    output, errors = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        _be_child(run_command, output[1], errors[1])
    os.close(output[1])
    os.close(errors[1])
    try:
        written = _read({output[0]: b"", errors[0]: b""}, deadline)
    finally:
        # It has ended, or has closed its output, or takes too long.
        status = _end(child, deadline)
    if written is None:
        return b"", f"it took more than {_DEADLINE:.0f} s" if monotonic() >= deadline else "too much output"
    if status != 0:
        text = written[errors[0]].decode(errors="replace").strip()
        return b"", text or f"it ended with status {status}"
    return written[output[0]], None


def _be_child(run_command: Callable[[], int], output: int, errors: int) -> None:
    """Run the command in this process, which then ends."""
    status = 1
    try:
        signal.alarm(_CHILD_SECONDS)
        os.dup2(output, 1)
        os.dup2(errors, 2)
        status = run_command()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException as error:  # noqa: BLE001  # the parent process reports it
        os.write(2, f"{type(error).__name__}: {error}".encode(errors="replace")[:_PIPE_BYTES])
    finally:
        os._exit(status)


def _read(written: dict[int, bytes], deadline: float) -> dict[int, bytes] | None:
    """Return what is written to pipes until they are closed; `None` if that takes too long or is too much."""
    waiting = list(written)
    while waiting:
        ready, _, _ = select.select(waiting, [], [], max(deadline - monotonic(), 0))
        if not ready:
            return None
        for pipe in ready:
            piece = os.read(pipe, 65_536)
            if not piece:
                waiting.remove(pipe)
            written[pipe] += piece
            if len(written[pipe]) > _MAX_OUTPUT:
                return None
    return written


def _end(child: int, deadline: float) -> int:
    """Return the status of the child process, which is killed if it has not ended in time."""
    while monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        select.select([], [], [], 0.0005)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _write(output: bytes, deadline: float) -> None:
    """Write to standard output, as far as somebody reads it in time."""
    while output:
        _, ready, _ = select.select([], [1], [], max(deadline - monotonic(), 0))
        if not ready:
            raise TimeoutError("nobody reads the output")
        output = output[os.write(1, output[:_PIPE_BYTES]) :]


def _report(reason: str, *, is_shown: bool) -> None:
    """Log why the command failed, if that is possible."""
    line = " ".join(reason.split())[:_MAX_REASON]
    try:
        if is_shown:
            os.write(2, f"{line}\n".encode(errors="replace"))
        from dittybag.config import settings_from_process
        from dittybag.domain.times import iso

        path = os.path.join(settings_from_process().home, _LOG)  # noqa: PTH118  # pathlib is slow to import
        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        try:
            if os.fstat(log).st_size > _MAX_LOG_BYTES:
                os.ftruncate(log, 0)
            os.write(log, f"{iso(time_ns() // 1000)} {line}\n".encode(errors="replace"))
        finally:
            os.close(log)
    except BaseException:  # noqa: BLE001  # there is nowhere left to report it
        return
