"""Runs the official suite against the fixture and against Dittybag itself: `python -m tests.conformance`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

from msgspec import Struct

from tests.conformance import product, suite
from tests.conformance.servers import FIXTURE, ServerFailed, dittybag, listening
from tests.conformance.suite import SuiteFailed
from tests.conformance.verdicts import Least, Verdict, judge
from tests.interop.environments import CONFORMANCE

#: How many runs may be under way: each keeps a server and the suite busy.
AT_ONCE: Final = 2


class Run(Struct, frozen=True):
    """One run of the suite: the server, what is asked of it, and how much has been checked so far."""

    server: str
    options: str
    least: Least


class Outcome(Struct, frozen=True):
    run: Run
    verdict: Verdict
    #: What speaks against the report, and against the server besides.
    problems: tuple[str, ...]
    seconds: float


RUNS: Final = (
    Run("fixture", "--requirements 2025-11-25", Least(33, 83)),
    Run("fixture", "--requirements 2026-07-28", Least(40, 152)),
    Run("fixture", "--suite all --spec-version 2025-06-18", Least(27, 56)),
    Run("fixture", "--suite all --spec-version 2025-11-25", Least(33, 83)),
    Run("fixture", "--suite all --spec-version 2026-07-28", Least(40, 152)),
    Run("dittybag", "--suite all --spec-version 2025-06-18", Least(14, 30)),
    Run("dittybag", "--suite all --spec-version 2025-11-25", Least(16, 34)),
    Run("dittybag", "--suite all --spec-version 2026-07-28", Least(17, 77)),
)


def carry_out(run: Run) -> Outcome:
    """Run the suite against a new server, and judge both."""
    with TemporaryDirectory() as folder:
        database, files = Path(folder) / "dittybag.db", Path(folder) / "report"
        files.mkdir()
        is_product = run.server == "dittybag"
        wants = product.WANTS if is_product else {}
        problems: list[str] = []
        with listening(*(dittybag(str(database)) if is_product else FIXTURE)) as server:
            if is_product:
                product.fill(server.address)
                problems += [
                    f"there is a {thing} now: take it off the list of what Dittybag lacks"
                    for thing in sorted(product.offered(server.address) & set(wants.values()))
                ]
            report = suite.run(server.address, run.options.split(), files)
            if not server.is_running:
                problems.append("the server did not survive it")
            said = re.sub(r"Web UI: .*\n", "", server.end().said)
    if said:
        problems.append(f"the server complained: {said[-2000:]}")
    verdict = judge(report, run.least, wants)
    return Outcome(run, verdict, (*problems, *verdict.problems), report.seconds)


def stale(outcomes: Sequence[Outcome]) -> list[str]:
    """What is listed as wanting, and never asked for."""
    left_out = {name for outcome in outcomes for name in outcome.verdict.left_out}
    return [f"nothing asks for {name} any more" for name in product.WANTS if name not in left_out]


def table(outcomes: Sequence[Outcome]) -> str:
    rows: list[tuple[str, ...]] = [("server", "run", "scenarios", "checks", "least", "left out", "seconds")]
    for outcome in outcomes:
        run, verdict = outcome.run, outcome.verdict
        numbers = (verdict.scenarios, verdict.checks, run.least.checks, len(verdict.left_out))
        rows.append((run.server, run.options, *map(str, numbers), f"{outcome.seconds:.1f}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([*map(str.ljust, row[:2], widths[:2]), *map(str.rjust, row[2:], widths[2:])])
        for row in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def complain(*problems: str) -> int:
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1


def main() -> int:
    # The prompts and libraries of whoever runs this are not seen, nor touched.
    for variable in [name for name in os.environ if name.startswith("DITTYBAG_")]:
        del os.environ[variable]
    if not CONFORMANCE.is_made:
        return complain("the suite is not installed\nhint: make conformance installs it and runs it")
    begun = perf_counter()
    with TemporaryDirectory() as home, ThreadPoolExecutor(AT_ONCE) as pool:
        os.environ["DITTYBAG_HOME"] = home
        try:
            outcomes = list(pool.map(carry_out, RUNS))
        except (ServerFailed, SuiteFailed) as failed:
            return complain(str(failed))
    print(table(outcomes))
    not_scored = {name for outcome in outcomes for name in outcome.verdict.not_scored}
    print(
        f"\nNot scored: {len(not_scored)} scenarios about tasks, an extension that Dittybag does not have."
        "\nLeft out: what wants a tool, prompt or capability that only a test server has; each is listed"
        "\nwith its reason in tests/conformance/product.py."
    )
    problems = [
        f"{outcome.run.server} {outcome.run.options}: {problem}"
        for outcome in outcomes
        for problem in outcome.problems
    ]
    problems += stale(outcomes)
    if problems:
        return complain(*problems)
    print(f"\nEverything passed, in {perf_counter() - begun:.0f} seconds.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
