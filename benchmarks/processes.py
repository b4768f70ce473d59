"""CPU time and memory of processes, from `/proc`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path


def with_children(pid: int) -> list[int]:
    """Return a process and all processes that it started, directly or not."""
    return [pid, *(each for child in children(pid) for each in with_children(child))]


def children(pid: int) -> list[int]:
    """Return the processes that a process started."""
    found: list[int] = []
    for thread in _threads(pid):
        # A thread may end meanwhile.
        with contextlib.suppress(OSError):
            found += map(int, (thread / "children").read_text().split())
    return found


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU time of all threads of some processes."""
    nanoseconds = 0
    for pid in pids:
        for thread in _threads(pid):
            with contextlib.suppress(OSError):
                nanoseconds += int((thread / "schedstat").read_text().split()[0])
    return nanoseconds / 1e9


def memory(pids: Iterable[int]) -> int:
    """Return the resident memory of some processes, in bytes."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024
    return total


def _threads(pid: int) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from Path(f"/proc/{pid}/task").iterdir()
