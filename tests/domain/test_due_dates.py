"""Due dates in natural language, and relative times."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.domain.due_dates import NotADate, format_due, is_overdue, local_due_day, parse_due_date
from dittybag.domain.tasks import problems

#: A Wednesday.
TODAY = date(2026, 3, 18)


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("today", "2026-03-18"),
        ("  Tomorrow ", "2026-03-19"),
        ("yesterday", "2026-03-17"),
        ("wed", "2026-03-18"),
        ("thu", "2026-03-19"),
        ("Thurs", "2026-03-19"),
        ("fri", "2026-03-20"),
        ("friday", "2026-03-20"),
        ("this fri", "2026-03-20"),
        ("on fri", "2026-03-20"),
        ("tue", "2026-03-24"),
        ("next wed", "2026-03-25"),
        ("next fri", "2026-03-27"),
        ("in 3 days", "2026-03-21"),
        ("3 days", "2026-03-21"),
        ("3d", "2026-03-21"),
        ("+3d", "2026-03-21"),
        ("0d", "2026-03-18"),
        ("in a week", "2026-03-25"),
        ("2w", "2026-04-01"),
        ("in 2 weeks", "2026-04-01"),
        ("next week", "2026-03-25"),
        ("1mo", "2026-04-18"),
        ("2 months", "2026-05-18"),
        ("next month", "2026-04-18"),
        ("in 10 months", "2027-01-18"),
        ("1y", "2027-03-18"),
        ("next year", "2027-03-18"),
        ("eom", "2026-03-31"),
        ("end of month", "2026-03-31"),
        ("eoy", "2026-12-31"),
        ("24 dec", "2026-12-24"),
        ("24 December", "2026-12-24"),
        ("24th of december", "2026-12-24"),
        ("dec 24", "2026-12-24"),
        ("Dec 24, 2028", "2028-12-24"),
        ("24 dec 2028", "2028-12-24"),
        ("18 mar", "2026-03-18"),
        ("17 mar", "2027-03-17"),
        ("29 feb", "2028-02-29"),
        ("2026-12-24", "2026-12-24"),
        ("2026-12-24T17:00:00Z", "2026-12-24T17:00:00Z"),
        ("2026-12-24 17:00", "2026-12-24T17:00"),
        ("fri 17:00", "2026-03-20T17:00"),
        ("tomorrow at 9:30", "2026-03-19T09:30"),
    ],
)
def test_words_are_parsed_as_dates(words: str, day: str) -> None:
    assert parse_due_date(words, TODAY) == day
    assert not list(problems(due_date=day))


@pytest.mark.parametrize(
    ("today", "words", "day"),
    [
        (date(2026, 1, 31), "1mo", "2026-02-28"),
        (date(2028, 1, 31), "next month", "2028-02-29"),
        (date(2028, 2, 29), "1y", "2029-02-28"),
        (date(2026, 12, 31), "tomorrow", "2027-01-01"),
        (date(2026, 12, 5), "eom", "2026-12-31"),
        (date(2028, 2, 5), "eom", "2028-02-29"),
        (date(2026, 12, 15), "1mo", "2027-01-15"),
    ],
)
def test_months_end_on_their_last_day(today: date, words: str, day: str) -> None:
    assert parse_due_date(words, today) == day


@pytest.mark.parametrize(
    "words",
    [
        "",
        " ",
        "soon",
        "fr",
        "frida y",
        "last fri",
        "30m",
        "in 3 hours",
        "fri 24:00",
        "17:00",
        "next soon",
        "31 feb",
        "0 dec",
        "24 foo",
        "24 dec 0000",
        "99999 years",
        "in days",
        "-3d",
        "٣d",
        "24.12.",
        "12/24",
        "2026-3-1",
        "tomorrow\0",
        "x" * 100_000,
        "9" * 50 + "d",
    ],
)
def test_invalid_dates_are_rejected(words: str) -> None:
    with pytest.raises(NotADate):
        parse_due_date(words, TODAY)


@given(st.text(max_size=30), st.dates())
def test_any_text_is_a_date_or_is_rejected(words: str, today: date) -> None:
    try:
        parse_due_date(words, today)
    except NotADate:
        return


@given(st.dates(max_value=date(9990, 1, 1)), st.integers(0, 6))
def test_a_weekday_is_the_next_one(today: date, number: int) -> None:
    name = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")[number]
    coming = date.fromisoformat(parse_due_date(name, today))
    assert coming.weekday() == number
    assert timedelta(0) <= coming - today < timedelta(7)
    assert parse_due_date(f"next {name}", today) == (coming + timedelta(7)).isoformat()


def test_a_date_is_overdue_after_its_day_and_a_time_once_it_has_passed() -> None:
    now = datetime(2026, 3, 18, 12, 0, tzinfo=UTC)
    assert is_overdue("2026-03-17", now)
    assert not is_overdue("2026-03-18", now)
    assert is_overdue("2026-03-18T11:59:00Z", now)
    assert not is_overdue("2026-03-18T12:01:00Z", now)
    assert is_overdue("2026-03-18T13:30:00+02:00", now)
    assert not is_overdue("2026-03-18T11:30:00-02:00", now)
    # The first and last dates, which cannot be converted to every time zone.
    assert is_overdue("0001-01-01T00:00:00+14:00", now)
    assert not is_overdue("9999-12-31T23:59:59-14:00", now)


def test_near_dates_are_formatted_in_words() -> None:
    now = datetime(2026, 3, 18, 12, 0).astimezone()
    for due, words in {
        "2026-03-17": "yesterday",
        "2026-03-18": "today",
        "2026-03-19": "tomorrow",
        "2026-03-18T17:00": "today 17:00",
        "2026-03-20": "Friday",
        "2026-03-24": "Tuesday",
        "2026-03-25": "25 Mar",
        "2026-03-13": "5 days ago",
        "2026-03-10": "10 Mar",
        "2027-03-10T09:30": "10 Mar 2027 09:30",
    }.items():
        assert format_due(due, now) == words
        assert local_due_day(due) == due[:10]
