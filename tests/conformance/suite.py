"""The official suite as a program, and the report that it leaves in files."""

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
#: A run that has not finished by then hangs: no run takes a tenth of it.
RUN_SECONDS: Final = 180.0

_FOLDER: Final = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
_SUMMARY: Final = re.compile(r"^[✓✗] (\S+): (\d+) passed, \d+ failed", re.MULTILINE)


class Check(Struct, frozen=True, rename="camel"):
    """One observation: SUCCESS, FAILURE, WARNING, SKIPPED or INFO."""

    id: str
    status: str
    error_message: str = ""
    details: Any = None


class Report(Struct, frozen=True):
    """What one run of the suite found, scenario by scenario."""

    scenarios: Mapping[str, Sequence[Check]]
    #: How many checks passed in each scenario, as the suite itself sums it up.
    summary: Mapping[str, int]
    #: The suite's exit status: not zero if a scenario failed that counts for it.
    status: int
    seconds: float


class SuiteFailed(Exception):
    """The suite came to no end, or left no report."""


def run(address: str, options: Sequence[str], folder: Path) -> Report:
    """Run the suite against a server; the files go into an empty folder. Raises `SuiteFailed`."""
    begun = perf_counter()
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
        named = _FOLDER.fullmatch(file.parent.name)
        assert named, file
        scenarios[named[1]] = msgspec.json.decode(file.read_bytes(), type=list[Check])
    if not scenarios:
        raise SuiteFailed(f"the suite left no report: {done.stdout[-2000:]}")
    summary = {name: int(passed) for name, passed in _SUMMARY.findall(done.stdout)}
    return Report(scenarios, summary, done.returncode, perf_counter() - begun)
