"""Run the official suite against the everything server and Dittybag: `python -m tests.conformance`."""

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

from tests.conformance import conformance_suite, dittybag_target
from tests.conformance.conformance_suite import SuiteFailed
from tests.conformance.verdicts import MinimumCounts, Verdict, judge
from tests.contracts.library_fixtures import write_files
from tests.http.plain_http_client import PlainHttpClient
from tests.http.spawned_server import SpawnedServer
from tests.interop.environments import CONFORMANCE
from tests.skill_samples import LIBRARY

#: Each run keeps one server process and one suite process busy.
CONCURRENT_RUNS: Final = 2


class SuiteRun(Struct, frozen=True):
    """One run of the suite: the server, the suite's options, and the minimum result."""

    server: str
    options: str
    minimum: MinimumCounts


class Outcome(Struct, frozen=True):
    run: SuiteRun
    verdict: Verdict
    #: The problems in the report and those of the server.
    problems: tuple[str, ...]
    seconds: float


RUNS: Final = (
    SuiteRun("everything", "--requirements 2025-11-25", MinimumCounts(33, 83)),
    SuiteRun("everything", "--requirements 2026-07-28", MinimumCounts(40, 152)),
    SuiteRun("everything", "--suite all --spec-version 2025-06-18", MinimumCounts(27, 56)),
    SuiteRun("everything", "--suite all --spec-version 2025-11-25", MinimumCounts(33, 83)),
    SuiteRun("everything", "--suite all --spec-version 2026-07-28", MinimumCounts(40, 152)),
    SuiteRun("dittybag", "--suite all --spec-version 2025-06-18", MinimumCounts(14, 30)),
    SuiteRun("dittybag", "--suite all --spec-version 2025-11-25", MinimumCounts(16, 34)),
    SuiteRun("dittybag", "--suite all --spec-version 2026-07-28", MinimumCounts(17, 77)),
    *(
        # The scenarios of an extension belong to no revision, and run in any only if they are named.
        SuiteRun(
            "dittybag", f"--scenario {scenario} --force --spec-version {version}", MinimumCounts(1, checks)
        )
        for version, without_hints in (("2025-11-25", 2), ("2026-07-28", 0))
        for scenario, checks in (
            ("sep-2640-skills-enumeration", 32 - without_hints),
            ("sep-2640-skills-manifest", 6),
            ("sep-2640-skills-directory", 7),
        )
    ),
)


def run_suite(run: SuiteRun) -> Outcome:
    """Run the suite against a new server and judge the report and the server."""
    with TemporaryDirectory() as folder:
        database, files = Path(folder) / "dittybag.db", Path(folder) / "report"
        files.mkdir()
        is_product = run.server == "dittybag"
        exclusions = dittybag_target.EXCLUSIONS if is_product else {}
        problems: list[str] = []
        home = Path(os.environ["DITTYBAG_HOME"])
        with (
            SpawnedServer.product(home, "--db", str(database)) if is_product else SpawnedServer.everything()
        ) as server:
            if is_product:
                with PlainHttpClient(server.port) as client:
                    dittybag_target.fill_store(client)
                    found = dittybag_target.available_features(client) & set(exclusions.values())
                problems += [
                    f"Dittybag has the {feature}: remove it from the exclusions" for feature in sorted(found)
                ]
            report = conformance_suite.run(server.address, run.options.split(), files)
            if not server.is_running:
                problems.append("the server ended during the run")
            output = re.sub(r"Web UI: .*\n", "", server.end()[1])
    if output:
        problems.append(f"the server wrote to standard error: {output[-2000:]}")
    verdict = judge(report, run.minimum, exclusions)
    return Outcome(run, verdict, (*problems, *verdict.problems), report.seconds)


def unused_exclusions(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a problem for each exclusion that matches no scenario or check."""
    excluded = {name for outcome in outcomes for name in outcome.verdict.excluded}
    return [
        f"the exclusion {name} matches no scenario or check"
        for name in dittybag_target.EXCLUSIONS
        if name not in excluded
    ]


def table(outcomes: Sequence[Outcome]) -> str:
    rows: list[tuple[str, ...]] = [("server", "run", "scenarios", "checks", "minimum", "excluded", "seconds")]
    for outcome in outcomes:
        run, verdict = outcome.run, outcome.verdict
        numbers = (verdict.scenarios, verdict.checks, run.minimum.checks, len(verdict.excluded))
        rows.append((run.server, run.options, *map(str, numbers), f"{outcome.seconds:.1f}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([*map(str.ljust, row[:2], widths[:2]), *map(str.rjust, row[2:], widths[2:])])
        for row in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def report_errors(*problems: str) -> int:
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1


def main() -> int:
    # Isolate the runs from the user's own prompts and libraries.
    for variable in [name for name in os.environ if name.startswith("DITTYBAG_")]:
        del os.environ[variable]
    if not CONFORMANCE.is_installed:
        return report_errors("the suite is not installed\nhint: `make conformance` installs and runs it")
    started = perf_counter()
    with TemporaryDirectory() as home, ThreadPoolExecutor(CONCURRENT_RUNS) as pool:
        os.environ["DITTYBAG_HOME"] = home
        write_files(Path(home) / "libraries" / "acme", LIBRARY)
        try:
            outcomes = list(pool.map(run_suite, RUNS))
        except SuiteFailed as failed:
            return report_errors(str(failed))
    print(table(outcomes))
    not_scored = {name for outcome in outcomes for name in outcome.verdict.not_scored}
    print(
        f"\nNot scored: {len(not_scored)} scenarios of the tasks extension, which Dittybag does not have."
        "\nExcluded: scenarios and checks that need a tool, prompt or capability that only a test server has."
        "\nThe reasons are in tests/conformance/dittybag_target.py."
    )
    problems = [
        f"{outcome.run.server} {outcome.run.options}: {problem}"
        for outcome in outcomes
        for problem in outcome.problems
    ]
    problems += unused_exclusions(outcomes)
    if problems:
        return report_errors(*problems)
    print(f"\nAll runs passed in {perf_counter() - started:.0f} seconds.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
