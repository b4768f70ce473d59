"""Runs the repeated tests in full, file by file, and records the results: `python -m tests.full_runs`.

Files as arguments select some of them; all options that begin with `-` are passed to pytest. The results
are in `full_runs.json`, and `python -m tests.tested_page` writes them into the page.
"""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

ROOT: Final = Path(__file__).resolve().parent.parent
RECORD: Final = ROOT / "tests" / "full_runs.json"

#: For one test.
_TIMEOUT_SECONDS: Final = 7200


class FullRun(Struct, frozen=True):
    """The last full run of a file of tests."""

    date: str
    passed: int
    failed: int
    skipped: int
    seconds: int


def repeated_files() -> list[str]:
    """Return the files whose tests repeat something more often in a full run, and all of `tests/torture`."""
    marks = ("tests.repetitions", "backend.examples")
    found = {
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if "torture" in path.parts or any(mark in path.read_text() for mark in marks)
    }
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def load() -> dict[str, FullRun]:
    """Return the recorded runs by file."""
    return msgspec.json.decode(RECORD.read_bytes(), type=dict[str, FullRun]) if RECORD.exists() else {}


def run(file: str, options: Sequence[str]) -> FullRun:
    """Run a file in full, and record the result."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable, "-m", "pytest", file,
            "-o", f"timeout={_TIMEOUT_SECONDS}", f"--junitxml={report}", *options,
        ]  # fmt: skip
        subprocess.run(command, cwd=ROOT, env={**os.environ, "TORTURE": "1"}, check=False)
        passed, failed, skipped = _counts(report)
    return store(file, started, passed, failed, skipped)


def store(name: str, started: float, passed: int, failed: int, skipped: int = 0) -> FullRun:
    """Record the result of a run that started at a time of the monotonic clock."""
    found = FullRun(
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        passed=passed,
        failed=failed,
        skipped=skipped,
        seconds=round(time.monotonic() - started),
    )
    record = dict(sorted({**load(), name: found}.items()))
    RECORD.write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    return found


def _counts(report: Path) -> tuple[int, int, int]:
    """Return how many tests passed, failed and were skipped. A run without a report has failed."""
    if not report.exists():
        return 0, 1, 0
    # The report is our own.
    suites = ET.parse(report).getroot().iter("testsuite")
    totals = [[int(suite.get(name, "0")) for name in _COUNTS] for suite in suites]
    tests, failures, errors, skipped = (sum(column) for column in zip(*totals, strict=True))
    return tests - failures - errors - skipped, failures + errors, skipped


_COUNTS: Final = ("tests", "failures", "errors", "skipped")


def main(arguments: Sequence[str]) -> int:
    """Run all files, or those that are named. Returns the exit status."""
    options = [argument for argument in arguments if argument.startswith("-")]
    files = [argument for argument in arguments if not argument.startswith("-")] or repeated_files()
    failed = 0
    for number, file in enumerate(files, 1):
        print(f"{file} ({number} of {len(files)}) ...", flush=True)
        found = run(file, options)
        failed += found.failed
    print(f"{len(files)} files, {failed} failed tests")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
