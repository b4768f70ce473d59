"""The child processes of the test process."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def child_pids() -> set[int]:
    """Return the ids of the running child processes."""
    found: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        # The thread may end meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            found.update(map(int, (thread / "children").read_text().split()))
    return found
