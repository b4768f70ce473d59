"""A report of the suite counts for what was checked, and for nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.conformance.suite import Check, Report
from tests.conformance.verdicts import Least, Verdict, judge

WIRE = Check("wire-schema-valid", "SUCCESS", details={"messagesValidated": 2, "violations": []})
GOOD = [Check("ping", "SUCCESS"), WIRE]
NOTHING = Least(0, 0)


def report(
    scenarios: Mapping[str, Sequence[Check]], *, summary: Mapping[str, int] | None = None, status: int = 0
) -> Report:
    counted = {name: sum(check.status == "SUCCESS" for check in checks) for name, checks in scenarios.items()}
    return Report(scenarios, counted if summary is None else summary, status, 0.0)


def verdict_on(*checks: Check, **options: Any) -> Verdict:
    return judge(report({"scenario": checks}, **options), NOTHING, {})


def test_successes_are_counted() -> None:
    verdict = judge(report({"one": GOOD, "two": GOOD}), Least(2, 4), {})
    assert (verdict.scenarios, verdict.checks, verdict.problems) == (2, 4, ())


@pytest.mark.parametrize("status", ["FAILURE", "WARNING", "SKIPPED", "INFO", "SOMETHING_NEW"])
def test_whatever_is_no_success_is_a_problem(status: str) -> None:
    (problem,) = verdict_on(*GOOD, Check("other", status, "the reason")).problems
    assert problem == f"scenario: {status} other: the reason"


def test_a_note_of_what_was_exchanged_is_no_problem() -> None:
    noted = [*GOOD, Check("outgoing-request", "INFO")]
    assert judge(report({"server-sse-polling": noted}), NOTHING, {}).problems == ()


@pytest.mark.parametrize("checks", [[], [WIRE]], ids=["no check", "only the messages"])
def test_a_scenario_that_checked_nothing_has_not_passed(checks: list[Check]) -> None:
    assert verdict_on(*checks).problems == ("scenario: nothing of what it is about was checked",)


@pytest.mark.parametrize("details", [{"untestable": True}, {"skipped": True}, {"messagesValidated": 0}])
def test_a_success_without_a_test_is_a_problem(details: dict[str, Any]) -> None:
    (problem,) = verdict_on(*GOOD, Check("other", "SUCCESS", details=details)).problems
    assert problem == "scenario: other succeeded without a test"


@pytest.mark.parametrize("least", [Least(2, 2), Least(1, 3)], ids=["scenarios", "checks"])
def test_less_than_before_is_a_problem(least: Least) -> None:
    (problem,) = judge(report({"scenario": GOOD}), least, {}).problems
    assert problem.startswith("2 checks in 1 scenarios, but there were")


@pytest.mark.parametrize("summary", [{"scenario": 2, "lost": 1}, {"scenario": 3}, {}])
def test_files_that_do_not_agree_with_the_suites_summary_are_a_problem(summary: dict[str, int]) -> None:
    assert verdict_on(*GOOD, summary=summary).problems


def test_the_suites_own_verdict_counts_too() -> None:
    assert verdict_on(*GOOD, status=1).problems == ("the suite itself ended with status 1",)


def test_scenarios_about_tasks_are_not_scored() -> None:
    verdict = judge(report({"one": GOOD, "tasks-lifecycle": [Check("a", "FAILURE")]}), Least(1, 2), {})
    assert (verdict.not_scored, verdict.problems) == (("tasks-lifecycle",), ())


def test_only_what_is_wanting_is_left_out() -> None:
    checks = [*GOOD, Check("untestable", "FAILURE"), Check("broken", "FAILURE", "why")]
    wants = {"wanting": "tool a", "scenario/untestable": "tool b", "never/asked": "tool c"}
    verdict = judge(
        report({"scenario": checks, "wanting": [Check("a", "FAILURE")]}, status=1), NOTHING, wants
    )
    assert verdict.left_out == ("scenario/untestable", "wanting")
    assert verdict.problems == ("scenario: FAILURE broken: why",)
    assert (verdict.scenarios, verdict.checks) == (1, 2)
