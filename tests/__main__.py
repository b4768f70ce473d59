"""Runs all tests: `python -m tests [pytest options]`. Timing-sensitive tests run last, one at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

#: Pytest's exit status when no tests were collected.
_NO_TESTS_COLLECTED: Final = 5

#: First the tests that run in two processes, then the tests that must run alone.
_PARTS: Final = (
    ("-m", "not alone", "--numprocesses", "2", "--dist", "worksteal"),
    ("-m", "alone"),
)

_SLOWEST: Final = "--durations=10"


def main(options: list[str]) -> int:
    """Run both parts and return the exit status."""
    # Without compiled modules, every process that a test starts would compile them again.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    statuses = [
        subprocess.run(
            [sys.executable, "-m", "pytest", *part, _SLOWEST, *options], env=environment, check=False
        ).returncode
        for part in _PARTS
    ]
    if all(status == _NO_TESTS_COLLECTED for status in statuses):
        return _NO_TESTS_COLLECTED
    return max(status for status in statuses if status != _NO_TESTS_COLLECTED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
