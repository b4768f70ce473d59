"""Only successful checks in a suite report count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.conformance.conformance_suite import Check, SuiteReport
from tests.conformance.verdicts import MinimumCounts, Verdict, judge

WIRE = Check("wire-schema-valid", "SUCCESS", details={"messagesValidated": 2, "violations": []})
GOOD = [Check("ping", "SUCCESS"), WIRE]
NO_MINIMUM = MinimumCounts(0, 0)


def report(
    scenarios: Mapping[str, Sequence[Check]], *, summary: Mapping[str, int] | None = None, status: int = 0
) -> SuiteReport:
    counted = {name: sum(check.status == "SUCCESS" for check in checks) for name, checks in scenarios.items()}
    return SuiteReport(scenarios, counted if summary is None else summary, status, 0.0)


def verdict_on(*checks: Check, **options: Any) -> Verdict:
    return judge(report({"scenario": checks}, **options), NO_MINIMUM, {})


def test_successes_are_counted() -> None:
    verdict = judge(report({"one": GOOD, "two": GOOD}), MinimumCounts(2, 4), {})
    assert (verdict.scenarios, verdict.checks, verdict.problems) == (2, 4, ())


@pytest.mark.parametrize("status", ["FAILURE", "WARNING", "SKIPPED", "INFO", "SOMETHING_NEW"])
def test_every_status_but_success_is_a_problem(status: str) -> None:
    (problem,) = verdict_on(*GOOD, Check("other", status, "the reason")).problems
    assert problem == f"scenario: {status} other: the reason"


def test_a_note_about_exchanged_messages_is_not_a_problem() -> None:
    noted = [*GOOD, Check("outgoing-request", "INFO")]
    assert judge(report({"server-sse-polling": noted}), NO_MINIMUM, {}).problems == ()


@pytest.mark.parametrize("checks", [[], [WIRE]], ids=["no check", "only message checks"])
def test_a_scenario_that_checked_nothing_has_not_passed(checks: list[Check]) -> None:
    assert verdict_on(*checks).problems == ("scenario: only the message format was checked",)


@pytest.mark.parametrize("details", [{"untestable": True}, {"skipped": True}, {"messagesValidated": 0}])
def test_a_success_without_a_test_is_a_problem(details: dict[str, Any]) -> None:
    (problem,) = verdict_on(*GOOD, Check("other", "SUCCESS", details=details)).problems
    assert problem == "scenario: other succeeded without a test"


@pytest.mark.parametrize("minimum", [MinimumCounts(2, 2), MinimumCounts(1, 3)], ids=["scenarios", "checks"])
def test_fewer_scenarios_or_checks_than_the_minimum_are_a_problem(minimum: MinimumCounts) -> None:
    (problem,) = judge(report({"scenario": GOOD}), minimum, {}).problems
    assert problem.startswith("2 checks in 1 scenarios, expected at least")


@pytest.mark.parametrize("summary", [{"scenario": 2, "lost": 1}, {"scenario": 3}, {}])
def test_files_that_do_not_agree_with_the_suites_summary_are_a_problem(summary: dict[str, int]) -> None:
    assert verdict_on(*GOOD, summary=summary).problems


def test_the_suites_own_verdict_counts_too() -> None:
    assert verdict_on(*GOOD, status=1).problems == ("the suite exited with status 1",)


def test_scenarios_about_tasks_are_not_scored() -> None:
    verdict = judge(
        report({"one": GOOD, "tasks-lifecycle": [Check("a", "FAILURE")]}), MinimumCounts(1, 2), {}
    )
    assert (verdict.not_scored, verdict.problems) == (("tasks-lifecycle",), ())


def test_only_listed_scenarios_and_checks_are_excluded() -> None:
    checks = [*GOOD, Check("untestable", "FAILURE"), Check("broken", "FAILURE", "why")]
    exclusions = {"excluded": "tool a", "scenario/untestable": "tool b", "unknown/check": "tool c"}
    verdict = judge(
        report({"scenario": checks, "excluded": [Check("a", "FAILURE")]}, status=1), NO_MINIMUM, exclusions
    )
    assert verdict.excluded == ("scenario/untestable", "excluded")
    assert verdict.problems == ("scenario: FAILURE broken: why",)
    assert (verdict.scenarios, verdict.checks) == (1, 2)
