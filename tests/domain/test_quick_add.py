"""Quick add: parsing a task from one line."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from dittybag.domain.errors import Invalid
from dittybag.domain.quick_add import task_fields

#: A Sunday.
TODAY = date(2026, 3, 1)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("Fix login", {"title": "Fix login"}),
        (
            "Fix login !5 @work due friday",
            {"title": "Fix login", "priority": 5, "project": "work", "due_date": "2026-03-06"},
        ),
        (
            'due in 3 days Call "the bank" @"Big money"',
            {"title": 'Call "the bank"', "due_date": "2026-03-04", "project": "Big money"},
        ),
        ("Pay due end of month now", {"title": "Pay now", "due_date": "2026-03-31"}),
        ("Pay due 2026-12-24 the rest", {"title": "Pay the rest", "due_date": "2026-12-24"}),
        ("Standup due fri 17:00 here", {"title": "Standup here", "due_date": "2026-03-06T17:00"}),
        ("Pay due 2mo later", {"title": "Pay later", "due_date": "2026-05-01"}),
        ("Meet due 2026-12-24 17:00 there", {"title": "Meet there", "due_date": "2026-12-24T17:00"}),
        ("x !1 !2", {"title": "x", "priority": 2}),
        # Words that are not recognised stay in the title.
        ("Due diligence", {"title": "Due diligence"}),
        ("Overdue books are due", {"title": "Overdue books are due"}),
        ("due 2026-02-31 x", {"title": "due 2026-02-31 x"}),
        (
            "Hurry! !6 !0 !55 ! #tag #deep @ ~2h -P 4",
            {"title": "Hurry! !6 !0 !55 ! #tag #deep @ ~2h -P 4"},
        ),
        ("mail a@b.example 5", {"title": "mail a@b.example 5"}),
        ("  spaces\tand\nlines ", {"title": "spaces and lines"}),
        ("!5 @work", {"title": "", "priority": 5, "project": "work"}),
        ("", {"title": ""}),
        ('"', {"title": '"'}),
    ],
)
def test_a_line_is_parsed_into_fields(text: str, fields: dict[str, Any]) -> None:
    assert task_fields(text, TODAY) == fields


@pytest.mark.parametrize("span", ["30m", "in 30 min", "3h", "in an hour", '"2 hours"'])
def test_a_due_date_in_minutes_or_hours_is_refused(span: str) -> None:
    with pytest.raises(Invalid, match=r"a due date has no minutes and hours from now"):
        task_fields(f"Pay rent due {span} please", TODAY)


def test_a_very_long_line_is_parsed_quickly() -> None:
    assert task_fields("due " * 100_000, TODAY)["title"].count("due") == 100_000
