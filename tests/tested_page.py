"""Writes the page "How Dittybag is tested" from the tests and their recorded runs: `python -m tests.tested_page`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.conformance.__main__ import RUNS
from tests.full_runs import FullRun, load
from tests.interop.environments import (
    CONFORMANCE,
    FASTMCP,
    INSPECTOR,
    PYTHON_1,
    PYTHON_2,
    TYPESCRIPT_1,
    TYPESCRIPT_2,
)
from tests.proofs import PROOFS, ROOT, Proof
from tests.torture.bombs import FILE_BOMBS, TEMPLATE_BOMBS
from tests.torture.plant import RECORDED_AS
from tests.torture.planted_bugs import BUGS

PAGE: Final = ROOT / "docs" / "develop" / "tested.md"

_INTRODUCTION: Final = """\
# How Dittybag is tested

The numbers on this page come from the tests themselves: `python -m tests.tested_page` writes it, and a test fails if it is out of date. Tests use real processes, databases, clients and browsers;
none of our own code is replaced by mocks.

- `make test` runs all tests, on SQLite and on two versions of PostgreSQL.
- `make torture` repeats what depends on chance or on a moment many more times, and records the result.
- `make bugs` plants known bugs into copies of the source and checks that the tests of `make test` fail.
- `make conformance` runs the official conformance suite.

Each row can be repeated alone, for example:

```sh not-run="takes minutes, in a clone"
.venv/bin/python -m tests.full_runs tests/torture/test_kills.py
TORTURE_SEED=7 .venv/bin/python -m tests.full_runs tests/torture/test_kills.py
```

"Last full run" is what the last run of `make torture`, or of `python -m tests.full_runs`, recorded for the file on a machine with two cores. "Not recorded" means that nobody has run it in full since records are kept.
"""


def page() -> str:
    """Return the text of the page."""
    runs = load()
    parts = [_INTRODUCTION]
    for title, proofs in PROOFS.items():
        parts.append(f"## {title}\n\n" + _table(proofs, runs))
    parts += [_bombs(), _bugs(runs), _conformance(), _clients()]
    return "\n".join(parts)


def _table(proofs: tuple[Proof, ...], runs: dict[str, FullRun]) -> str:
    lines = ["| claim and test | `make test` | `make torture` | last full run |", "|---|---|---|---|"]
    lines += [
        f"| {proof.claim}: {_link(proof.recorded_as)} | {proof.counts(0)} | {proof.counts(1)} | {_result(runs.get(proof.recorded_as))} |"
        for proof in proofs
    ]
    return "\n".join(lines) + "\n"


def _link(file: str) -> str:
    return f"[{Path(file).name}]({os.path.relpath(ROOT / file, PAGE.parent)})"


def _result(run: FullRun | None) -> str:
    if run is None:
        return "not recorded"
    tests = "1 test" if run.passed == 1 else f"{run.passed:,} tests"
    failed = f", **{run.failed} failed**" if run.failed else ""
    return f"{run.date}: {tests} passed{failed}, {run.seconds:,} s"


def _bombs() -> str:
    return f"""\
## Template and file bombs

{len(TEMPLATE_BOMBS)} templates and {len(FILE_BOMBS)} files that try to use up time or memory ({_link("tests/torture/bombs.py")}), in every run of `make test`: each is stopped within 500 ms, the memory of the server stays
flat, and other calls are answered meanwhile ({_link("tests/torture/test_bombs.py")}).
"""


def _bugs(runs: dict[str, FullRun]) -> str:
    run = runs.get(RECORDED_AS)
    last = (
        "not recorded"
        if run is None
        else f"{run.date}: {run.passed} of {run.passed + run.failed} were caught, {run.seconds:,} s"
    )
    return f"""\
## Planted bugs

A test suite that passes proves little if it also passes with bugs. `make bugs` plants {len(BUGS)} known bugs, one at a time, and runs the tests that must catch it: writes acknowledged too early,
missing owner checks, crossed responses and others ({_link("tests/torture/planted_bugs.py")}). Last full run: {last}.
"""


def _conformance() -> str:
    rows = "\n".join(
        f"| {run.server} | `{run.options}` | {run.minimum.scenarios} | {run.minimum.checks} |" for run in RUNS
    )
    return f"""\
## Official conformance suite

`make conformance` runs {CONFORMANCE.title} against a server with one of every feature of the protocol (`everything`) and against Dittybag itself. A run fails if a check fails, or if fewer scenarios or checks ran
than the table says ({_link("tests/conformance/__main__.py")}).

| server | options | scenarios | checks |
|---|---|---|---|
{rows}
"""


def _clients() -> str:
    return "## Official clients\n\n" + "\n".join(_client_lines())


def _client_lines() -> Iterator[str]:
    yield "Every run of `make test` drives Dittybag with these programs, over stdio and HTTP:\n"
    for environment in (PYTHON_2, PYTHON_1, TYPESCRIPT_2, TYPESCRIPT_1, INSPECTOR, FASTMCP):
        yield f"- {environment.title}"
    yield ""
    yield "[Benchmarks](../reference/benchmarks.md) compare the speed, [security](../../SECURITY.md) lists what is guaranteed with the test of each guarantee."
    yield ""


def main() -> None:
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
