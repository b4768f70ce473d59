"""What the system says of this process."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def children() -> set[int]:
    """The processes that this one has started, and that have not ended yet."""
    found: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        # It may end while we look.
        with suppress(FileNotFoundError, ProcessLookupError):
            found.update(map(int, (thread / "children").read_text().split()))
    return found
