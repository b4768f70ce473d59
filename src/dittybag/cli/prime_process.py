"""Runs `dittybag prime` so that no failure of it reaches the client that waits for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from io import BytesIO, TextIOWrapper
from threading import Event, Thread
from time import time_ns
from typing import Final

#: In seconds. A hook that takes longer than this is in the way.
_DEADLINE: Final = 1.0
_LOG: Final = "prime.log"
_MAX_LOG_BYTES: Final = 64 * 1024
_MAX_REASON: Final = 500


def run(arguments: Sequence[str], run_command: Callable[[], int]) -> int:
    """Print the output of the command if it succeeds in time, else nothing. Returns 0."""
    is_verbose = "--verbose" in arguments
    # A thread, because a signal would wait for the end of a call of the database.
    Thread(target=_end_late, kwargs={"is_verbose": is_verbose}, daemon=True).start()
    output, errors = BytesIO(), BytesIO()
    try:
        sys.stdout, sys.stderr = TextIOWrapper(output), TextIOWrapper(errors)
        status = run_command()
        sys.stdout.flush()
        sys.stderr.flush()
        reason = errors.getvalue().decode(errors="replace").strip() or f"it ended with status {status}"
        if status == 0:
            reason = ""
            _write(output.getvalue())
    except BaseException as error:  # noqa: BLE001  # nothing may stop the client
        reason = f"{type(error).__name__}: {error}"
    if reason:
        _report(reason, is_shown=is_verbose)
    return 0


def _end_late(*, is_verbose: bool) -> None:
    """End this process, with success, if it still runs after the deadline."""
    Event().wait(_DEADLINE)
    _report(f"it took more than {_DEADLINE:.0f} s", is_shown=is_verbose)
    os._exit(0)


def _write(output: bytes) -> None:
    while output:
        output = output[os.write(1, output) :]


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
