"""Verdicts on reports of the conformance suite.

The suite is lenient: a check with a warning, a skipped check and a check that is not applicable do not fail
a run, and a scenario without any check passes. Here only a successful check counts. Every other status is a
problem, unless it is listed below or excluded by the caller, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tests.conformance.conformance_suite import Check, SuiteReport

#: Scenarios of an extension (SEP-2663) that Dittybag does not have. The suite does not score them either.
NOT_SCORED: Final = "tasks-"

#: Checks of the message format, which every scenario has. Alone, they do not show that a scenario passed.
_MESSAGE_CHECKS: Final = ("wire-schema-valid", "wire-schema-harness-error")

#: INFO checks that are not a problem, as scenario and check.
_ALLOWED_NOTES: Final = {
    # A log of the exchanged messages.
    ("server-sse-polling", "outgoing-request"),
    ("server-sse-polling", "incoming-response"),
    ("server-sse-polling", "incoming-sse-event"),
    ("server-sse-polling", "stream-closed"),
    # It sends three list requests at once. They are answered immediately, without a stream.
    ("server-sse-multiple-streams", "server-sse-streams-functional"),
}

#: Checks of skills that older revisions cannot fulfil, because their results have no cache hints.
_NEWER_CHECKS: Final = {"sep-2640-skills-list-cache-attributes", "sep-2640-skills-get-cache-attributes"}
_NOT_IN_REVISION: Final = "not applicable on negotiated protocol"

#: The feature that a server lacks, by scenario or by scenario and check: `server-stateless/a-check`.
Exclusions = Mapping[str, str]


class MinimumCounts(Struct, frozen=True):
    """The minimum number of scenarios and checks. A lower number means that part of the suite did not run."""

    scenarios: int
    checks: int


class Verdict(Struct, frozen=True):
    """The number of scenarios and passed checks, and the problems."""

    scenarios: int
    checks: int
    #: The keys of the exclusions that applied.
    excluded: tuple[str, ...]
    not_scored: tuple[str, ...]
    problems: tuple[str, ...]


def judge(report: SuiteReport, minimum: MinimumCounts, exclusions: Exclusions) -> Verdict:
    """Return the verdict on a report, without the excluded scenarios and checks."""
    problems = _count_mismatches(report)
    excluded: list[str] = []
    not_scored: list[str] = []
    scenarios = checks = 0
    for scenario, found in report.scenarios.items():
        if scenario.startswith(NOT_SCORED):
            not_scored.append(scenario)
            continue
        if scenario in exclusions:
            excluded.append(scenario)
            continue
        counted = [check for check in found if f"{scenario}/{check.id}" not in exclusions]
        excluded += sorted({f"{scenario}/{check.id}" for check in found} & exclusions.keys())
        passed = [check for check in counted if check.status == "SUCCESS"]
        scenarios += 1
        checks += len(passed)
        problems += [problem for check in counted if (problem := _find_problem(scenario, check))]
        if all(check.id in _MESSAGE_CHECKS for check in passed):
            problems.append(f"{scenario}: only the message format was checked")
    if scenarios < minimum.scenarios or checks < minimum.checks:
        problems.append(
            f"{checks} checks in {scenarios} scenarios, "
            f"expected at least {minimum.checks} in {minimum.scenarios}"
        )
    if report.status != 0 and not exclusions:
        problems.append(f"the suite exited with status {report.status}")
    return Verdict(scenarios, checks, tuple(excluded), tuple(not_scored), tuple(problems))


def _count_mismatches(report: SuiteReport) -> list[str]:
    """Return a problem for each scenario whose summary and files disagree."""
    summary = report.summary
    written = {
        scenario: sum(check.status == "SUCCESS" for check in found)
        for scenario, found in report.scenarios.items()
    }
    return [
        f"{scenario}: the suite counts {summary.get(scenario)} checks, its files {written.get(scenario)}"
        for scenario in sorted(summary.keys() | written.keys())
        if summary.get(scenario) != written.get(scenario)
    ]


def _find_problem(scenario: str, check: Check) -> str | None:
    if check.status == "INFO" and (scenario, check.id) in _ALLOWED_NOTES:
        return None
    if check.id in _NEWER_CHECKS and check.error_message.startswith(_NOT_IN_REVISION):
        return None
    details = check.details if isinstance(check.details, dict) else {}
    if check.status != "SUCCESS":
        return f"{scenario}: {check.status} {check.id}: {check.error_message or details.get('message', '')}"
    if details.get("untestable") or details.get("skipped") or details.get("messagesValidated") == 0:
        return f"{scenario}: {check.id} succeeded without a test"
    return None
