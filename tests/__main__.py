"""Runs all tests: `python -m tests [pytest options]`. Timing-sensitive tests run last, one at a time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

#: Pytest's exit status when no tests were collected.
_NO_TESTS_COLLECTED: Final = 5

#: macOS does not say which processors a process may use.
_PROCESSORS: Final = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

#: Four processes keep two processors busy, because many tests wait for a time limit or for a notification.
#: Each takes up to 700 MB of memory.
_PROCESSES: Final = min(2 * _PROCESSORS, 6)

#: First the tests that run in several processes, then the tests that must run alone.
_PARTS: Final = (
    ("-m", "not alone", "--numprocesses", str(_PROCESSES), "--dist", "worksteal"),
    ("-m", "alone"),
)

_SLOWEST: Final = "--durations=10"

#: An in-memory file system, and how many bytes must be free: tests make files durable thousands of times.
_MEMORY: Final = Path("/dev/shm")
_MEMORY_BYTES: Final = 4 << 30


@contextmanager
def _temporary_files() -> Iterator[dict[str, str]]:
    """Yield the variables that put temporary files into memory, if there is enough. They are deleted."""
    chosen = "TMPDIR" in os.environ
    if chosen or not os.access(_MEMORY, os.W_OK) or shutil.disk_usage(_MEMORY).free < _MEMORY_BYTES:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="t-", dir=_MEMORY, ignore_cleanup_errors=True) as folder:
        # Some tests run servers as another user.
        Path(folder).chmod(0o1777)
        yield {"TMPDIR": folder}


def main(options: list[str]) -> int:
    """Run both parts and return the exit status."""
    # A shell ignores SIGINT for what it starts in the background. Tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Without compiled modules, every process that a test starts would compile them again.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with _temporary_files() as more:
        statuses = [
            subprocess.run(
                [sys.executable, "-m", "pytest", *part, _SLOWEST, *options],
                env=environment | more,
                check=False,
            ).returncode
            for part in _PARTS
        ]
    if all(status == _NO_TESTS_COLLECTED for status in statuses):
        return _NO_TESTS_COLLECTED
    return max(status for status in statuses if status != _NO_TESTS_COLLECTED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
