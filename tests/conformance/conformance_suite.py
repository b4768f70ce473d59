"""Runs the official conformance suite and reads its report files."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import msgspec
from msgspec import Struct

from tests.interop.environments import CONFORMANCE, NODE

PROGRAM: Final = (
    CONFORMANCE.home / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
)
#: Timeout for a run. A run usually takes less than a tenth of it.
RUN_SECONDS: Final = 180.0

_FOLDER: Final = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
_SUMMARY: Final = re.compile(r"^[✓✗] (\S+): (\d+) passed, \d+ failed", re.MULTILINE)

#: The summary of a run of one scenario.
_SINGLE_SUMMARY: Final = re.compile(r"^Passed: (\d+)/\d+", re.MULTILINE)


class Check(Struct, frozen=True, rename="camel"):
    """One check with its status: SUCCESS, FAILURE, WARNING, SKIPPED or INFO."""

    id: str
    status: str
    error_message: str = ""
    details: Any = None


class SuiteReport(Struct, frozen=True):
    """The result of one run, by scenario."""

    scenarios: Mapping[str, Sequence[Check]]
    #: The number of passed checks in each scenario, from the suite's own summary.
    summary: Mapping[str, int]
    #: The suite's exit status: nonzero if a scored scenario failed.
    status: int
    seconds: float


class SuiteFailed(Exception):
    """The suite timed out or wrote no report."""


def run(address: str, options: Sequence[str], folder: Path) -> SuiteReport:
    """Run the suite against a server. It writes its files to `folder`. Raises `SuiteFailed`."""
    started = perf_counter()
    try:
        done = subprocess.run(
            [str(NODE), str(PROGRAM), "server", "--url", address, *options, "--output-dir", str(folder)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SuiteFailed(f"the suite ran for more than {RUN_SECONDS:.0f} seconds: {options}") from None
    scenarios: dict[str, list[Check]] = {}
    for file in sorted(folder.glob("*/checks.json")):
        match = _FOLDER.fullmatch(file.parent.name)
        assert match, file
        scenarios[match[1]] = msgspec.json.decode(file.read_bytes(), type=list[Check])
    if not scenarios:
        raise SuiteFailed(f"the suite wrote no report: {done.stdout[-2000:]}")
    summary = {name: int(passed) for name, passed in _SUMMARY.findall(done.stdout)}
    if len(scenarios) == 1 and (single := _SINGLE_SUMMARY.search(done.stdout)):
        summary = dict.fromkeys(scenarios, int(single[1]))
    return SuiteReport(scenarios, summary, done.returncode, perf_counter() - started)
