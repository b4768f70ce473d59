"""Parsing and formatting of due dates in natural language."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Final

from dittybag.domain.display import format_date

EXAMPLES: Final = "tomorrow, fri, next fri, in 3 days, 2w, next week, eom, 24 dec, 2026-12-24"

_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS: Final = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_MAX_LENGTH: Final = 100
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[T ].*)?", re.ASCII)
_SPAN: Final = re.compile(
    r"(?:in\s+|\+)?(\d{1,5}|an?)\s*(d|days?|w|wks?|weeks?|mo|months?|y|years?)", re.ASCII
)
_SHORT_SPAN: Final = re.compile(r"(?:in\s+|\+)?(\d{1,5}|an?)\s*(m|mins?|minutes?|h|hrs?|hours?)", re.ASCII)
_CLOCK: Final = re.compile(r"(?:[01]?\d|2[0-3]):[0-5]\d", re.ASCII)
_DAY_MONTH: Final = re.compile(
    r"(\d{1,2})(?:st|nd|rd|th|\.)?\s*(?:of\s+)?([a-z]{3,9})\.?(?:,?\s+(\d{4}))?", re.ASCII
)
_MONTH_DAY: Final = re.compile(r"([a-z]{3,9})\.?\s*(\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(\d{4}))?", re.ASCII)


#: Inputs that clear a due date.
_NO_DATE: Final = ("", "none", "never")


class NotADate(ValueError):
    """The text is not a date."""


def is_short_span(text: str) -> bool:
    """Return whether a text is a time from now in minutes or hours, which due dates do not have."""
    return _SHORT_SPAN.fullmatch(text.lower().strip()) is not None


def parse_optional_due_date(text: str, today: date) -> str:
    """Like `parse_due_date`, but return an empty string for inputs that clear the date."""
    return "" if text.strip().lower() in _NO_DATE else parse_due_date(text, today)


def parse_due_date(text: str, today: date) -> str:
    """Return a date in ISO 8601, as tasks store it. Raises `NotADate`.

    A date or time in ISO 8601 is returned unchanged.
    """
    words = " ".join(text.lower().split())
    if not words or len(text) > _MAX_LENGTH:
        raise NotADate
    if _ISO.fullmatch(text.strip()):
        return text.strip().replace(" ", "T", 1)
    day_words, _, clock = words.rpartition(" ")
    if day_words and _CLOCK.fullmatch(clock):
        return f"{parse_due_date(day_words.removesuffix(' at'), today)[:10]}T{clock:0>5}"
    try:
        day = (
            _fixed_phrase(words, today)
            or _weekday(words, today)
            or _time_span(words, today)
            or _day_of_month(words, today)
        )
    except (ValueError, OverflowError) as error:
        raise NotADate from error
    if day is None:
        raise NotADate
    return day.isoformat()


def _fixed_phrase(words: str, today: date) -> date | None:
    match words:
        case "today" | "tod" | "now":
            return today
        case "tomorrow" | "tom" | "tmr":
            return today + timedelta(1)
        case "yesterday":
            return today - timedelta(1)
        case "next week":
            return today + timedelta(7)
        case "next month":
            return _months_later(today, 1)
        case "next year":
            return _months_later(today, 12)
        case "eom" | "end of month":
            return _last_of_month(today.year, today.month)
        case "eoy" | "end of year":
            return today.replace(month=12, day=31)
    return None


def _weekday(words: str, today: date) -> date | None:
    """Return the coming weekday, today included; with `next`, the one a week later."""
    which, _, name = words.rpartition(" ")
    number = _match_prefix(name, _DAYS)
    if number is None or which not in ("", "this", "next", "on"):
        return None
    coming = today + timedelta((number - today.weekday()) % 7)
    return coming + timedelta(7) if which == "next" else coming


def _time_span(words: str, today: date) -> date | None:
    found = _SPAN.fullmatch(words)
    if found is None:
        return None
    count = 1 if found[1].startswith("a") else int(found[1])
    unit = found[2][0]
    if unit in "dw":
        return today + timedelta(count * (7 if unit == "w" else 1))
    return _months_later(today, count * (12 if unit == "y" else 1))


def _day_of_month(words: str, today: date) -> date | None:
    """Return a day of a month: the next such day if no year is given."""
    if found := _DAY_MONTH.fullmatch(words):
        day, name, year = found.groups()
    elif found := _MONTH_DAY.fullmatch(words):
        name, day, year = found.groups()
    else:
        return None
    number = _match_prefix(name, _MONTHS)
    if number is None:
        return None
    if year is not None:
        return date(int(year), number + 1, int(day))
    # 29 February occurs within eight years, any other day within one.
    for later in range(9):
        try:
            candidate = date(today.year + later, number + 1, int(day))
        except ValueError:
            continue
        if candidate >= today:
            return candidate
    return None


def _match_prefix(word: str, names: tuple[str, ...]) -> int | None:
    """Return the index of the name that starts with `word`, which needs at least three letters."""
    if len(word) < 3:
        return None
    return next((number for number, name in enumerate(names) if name.startswith(word)), None)


def _months_later(day: date, months: int) -> date:
    """Return the same day of a later month, or the last day of that month."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = _last_of_month(year, month + 1)
    return last.replace(day=min(day.day, last.day))


def _last_of_month(year: int, month: int) -> date:
    first_of_next = date(year + month // 12, month % 12 + 1, 1)
    return first_of_next - timedelta(1)


def is_overdue(due: str, now: datetime) -> bool:
    """Return whether a due date has passed: its day, or its time if it has one."""
    moment = _local_time(due)
    return due[:10] < now.date().isoformat() if moment is None else moment < now


def local_due_day(due: str) -> str:
    """Return the day of a due date in the local time zone."""
    moment = _local_time(due)
    return due[:10] if moment is None else moment.date().isoformat()


def format_due(due: str, now: datetime) -> str:
    """Format a due date for people: relative if it is near, in the local time zone."""
    moment = _local_time(due)
    time = "" if moment is None else f" {moment:%H:%M}"
    day = date.fromisoformat(local_due_day(due))
    distance = (day - now.date()).days
    if -1 <= distance <= 1:
        return ("yesterday", "today", "tomorrow")[distance + 1] + time
    if 1 < distance < 7:
        return _DAYS[day.weekday()].capitalize() + time
    if -7 < distance < -1:
        return f"{-distance} days ago"
    return format_date(day, now.date()) + time


def format_due_day(due: str, now: datetime) -> str:
    """Format a due date with its weekday, as in `Fri 20 Nov`, in the local time zone."""
    moment = _local_time(due)
    time = "" if moment is None else f" {moment:%H:%M}"
    day = date.fromisoformat(local_due_day(due))
    return f"{_DAYS[day.weekday()][:3].capitalize()} {format_date(day, now.date())}{time}"


def format_exact_due(due: str) -> str:
    """Format a due date in words, in the local time zone, as in `18 Nov 2026, 14:00`."""
    moment = _local_time(due)
    try:
        day = date.fromisoformat(due[:10]) if moment is None else moment.date()
    except ValueError:
        return due
    return format_full_day(day) if moment is None else f"{format_full_day(day)}, {moment:%H:%M}"


def format_full_day(day: date) -> str:
    """Format a day as in `18 Nov 2026`."""
    return f"{day.day} {_MONTHS[day.month - 1][:3].capitalize()} {day.year}"


def _local_time(due: str) -> datetime | None:
    """Return the local time of a due date, or `None` if it has only a day."""
    if len(due) <= 10:
        return None
    try:
        return datetime.fromisoformat(due).astimezone()
    except (ValueError, OverflowError):
        # Out of the range of datetime; use the day only.
        return None
