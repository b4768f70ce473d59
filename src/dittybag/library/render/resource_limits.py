"""What a process may use while it handles foreign text: some memory, a moment, and nothing else."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: One job takes at most so long.
DEADLINE_SECONDS: Final = 0.25
TOO_LONG: Final = f"it takes longer than {1000 * DEADLINE_SECONDS:.0f} ms"
#: On top of what the process has when it begins.
MEMORY_BYTES: Final = 96 * 1024 * 1024


def confine() -> None:
    """From now on: no new file, no new process, little memory. What is needed must have been imported."""
    try:
        import resource
    except ImportError:
        # Windows has no such limits; the deadline still holds there, because the parent keeps it too.
        return
    limits = {
        "RLIMIT_AS": _address_space() + MEMORY_BYTES,
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_NOFILE": 3,
        "RLIMIT_NPROC": 0,
    }
    for name, most in limits.items():
        # Not every system has or honours each of them.
        if (number := getattr(resource, name, None)) is not None:
            try:
                resource.setrlimit(number, (most, most))
            except (OSError, ValueError):
                continue


def _address_space() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:  # pathlib is slow to import
            return int(file.read().split()[0]) * 4096
    except (OSError, ValueError):
        return 512 * 1024 * 1024


@contextmanager
def deadline() -> Iterator[None]:
    """The process is killed by its system if this takes too long, whatever it may be doing."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, DEADLINE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
