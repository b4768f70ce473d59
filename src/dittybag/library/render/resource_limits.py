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
#: What a child sends when it is ready: whether the system limits its memory.
READY_LIMITED: Final = b"limited\n"
READY_UNLIMITED: Final = b"unlimited\n"
#: Where Linux says how much address space this process uses.
_STATM: Final = "/proc/self/statm"


def apply_limits() -> bool:
    """Limit memory, and forbid opening files and starting processes. Imports must be done before.

    Returns whether the system limits memory. macOS does not: there, the parent watches it.
    """
    import resource

    used = _address_space()
    is_limited = used is not None and _set_limit(resource.RLIMIT_AS, used + MEMORY_BYTES)
    _set_limit(resource.RLIMIT_CORE, 0)
    _set_limit(resource.RLIMIT_FSIZE, 0)
    _set_limit(resource.RLIMIT_NOFILE, 3)
    _set_limit(resource.RLIMIT_NPROC, 0)
    return is_limited


def _set_limit(kind: int, limit: int) -> bool:
    """Return whether the system accepts the limit."""
    import resource

    try:
        resource.setrlimit(kind, (limit, limit))
    except (OSError, ValueError):
        return False
    return True


def _address_space() -> int | None:
    """Return the bytes of address space that this process uses; `None` if the system does not say."""
    from resource import getpagesize

    try:
        with open(_STATM, "rb") as file:  # pathlib is slow to import
            return int(file.read().split()[0]) * getpagesize()
    except (OSError, ValueError):
        return None


@contextmanager
def deadline() -> Iterator[None]:
    """The system kills the process if the block takes too long, even inside native code."""
    signal.setitimer(signal.ITIMER_REAL, DEADLINE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
