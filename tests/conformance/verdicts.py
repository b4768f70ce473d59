"""What a report of the suite is worth: what was really checked, and everything that speaks against it.

The suite is lenient: a check that warns, is skipped or notes that it was not applicable fails nothing, and a
scenario without any check has passed. Here a check counts if it succeeded, and nothing else is let through
unless it is named below or by the caller, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tests.conformance.suite import Check, Report

#: Of an extension (SEP-2663), which Dittybag does not have; the suite does not score them either.
NOT_SCORED: Final = "tasks-"

#: Checks about the messages of any scenario: alone, they say nothing about the scenario.
_ABOUT_MESSAGES: Final = ("wire-schema-valid", "wire-schema-harness-error")

#: Notes that say nothing against a scenario.
_NOTES: Final = {
    # The exchange itself, written down between the checks.
    ("server-sse-polling", "outgoing-request"),
    ("server-sse-polling", "incoming-response"),
    ("server-sse-polling", "incoming-sse-event"),
    ("server-sse-polling", "stream-closed"),
    # It asks for lists, three at once; they are there at once, and so are answered without a stream.
    ("server-sse-multiple-streams", "server-sse-streams-functional"),
}

#: What a server would have to have, by scenario, or by scenario and check: `server-stateless/a-check`.
Wants = Mapping[str, str]


class Least(Struct, frozen=True):
    """How much must have been checked: less means that something was lost on the way."""

    scenarios: int
    checks: int


class Verdict(Struct, frozen=True):
    """How much was checked, and what is wrong."""

    scenarios: int
    checks: int
    #: Scenarios, or scenarios and checks, that the server lacks something for.
    left_out: tuple[str, ...]
    not_scored: tuple[str, ...]
    problems: tuple[str, ...]


def judge(report: Report, least: Least, wants: Wants) -> Verdict:
    """Judge a report on a server that has everything but what is listed as wanting."""
    problems = _incomplete(report)
    left_out: list[str] = []
    not_scored: list[str] = []
    scenarios = checks = 0
    for scenario, found in report.scenarios.items():
        if scenario.startswith(NOT_SCORED):
            not_scored.append(scenario)
            continue
        if scenario in wants:
            left_out.append(scenario)
            continue
        counted = [check for check in found if f"{scenario}/{check.id}" not in wants]
        left_out += sorted({f"{scenario}/{check.id}" for check in found} & wants.keys())
        passed = [check for check in counted if check.status == "SUCCESS"]
        scenarios += 1
        checks += len(passed)
        problems += [problem for check in counted if (problem := _problem(scenario, check))]
        if all(check.id in _ABOUT_MESSAGES for check in passed):
            problems.append(f"{scenario}: nothing of what it is about was checked")
    if scenarios < least.scenarios or checks < least.checks:
        problems.append(
            f"{checks} checks in {scenarios} scenarios, but there were {least.checks} in {least.scenarios}"
        )
    if report.status != 0 and not wants:
        problems.append(f"the suite itself ended with status {report.status}")
    return Verdict(scenarios, checks, tuple(left_out), tuple(not_scored), tuple(problems))


def _incomplete(report: Report) -> list[str]:
    """What the suite says of itself, and its files do not."""
    told = report.summary
    written = {
        scenario: sum(check.status == "SUCCESS" for check in found)
        for scenario, found in report.scenarios.items()
    }
    return [
        f"{scenario}: the suite counts {told.get(scenario)} checks, its files {written.get(scenario)}"
        for scenario in sorted(told.keys() | written.keys())
        if told.get(scenario) != written.get(scenario)
    ]


def _problem(scenario: str, check: Check) -> str | None:
    if check.status == "INFO" and (scenario, check.id) in _NOTES:
        return None
    details = check.details if isinstance(check.details, dict) else {}
    if check.status != "SUCCESS":
        return f"{scenario}: {check.status} {check.id}: {check.error_message or details.get('message', '')}"
    if details.get("untestable") or details.get("skipped") or details.get("messagesValidated") == 0:
        return f"{scenario}: {check.id} succeeded without a test"
    return None
