"""Resource limits of child processes that handle untrusted text."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: Maximum time for one job.
DEADLINE_SECONDS: Final = 0.25
TOO_LONG: Final = f"it takes longer than {1000 * DEADLINE_SECONDS:.0f} ms"
#: Maximum memory, in addition to what the process uses when the limits are applied.
MEMORY_BYTES: Final = 96 * 1024 * 1024


def apply_limits() -> None:
    """Limit memory, and forbid opening files and starting processes. Imports must be done before."""
    try:
        import resource
    except ImportError:
        # Windows has no such limits. The parent still enforces the deadline.
        return
    limits = {
        "RLIMIT_AS": _address_space() + MEMORY_BYTES,
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_NOFILE": 3,
        "RLIMIT_NPROC": 0,
    }
    for name, limit in limits.items():
        # Not every system supports all of them.
        if (number := getattr(resource, name, None)) is not None:
            try:
                resource.setrlimit(number, (limit, limit))
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
    """The system kills the process if the block takes too long, even inside native code."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, DEADLINE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
