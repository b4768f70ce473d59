"""Due dates in words: what people type for one, and how far ahead it is."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Final

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
    r"(?:in\s+|\+)?(\d{1,5}|an?)\s*(d|days?|w|wks?|weeks?|m|months?|y|years?)", re.ASCII
)
_DAY_MONTH: Final = re.compile(
    r"(\d{1,2})(?:st|nd|rd|th|\.)?\s*(?:of\s+)?([a-z]{3,9})\.?(?:,?\s+(\d{4}))?", re.ASCII
)
_MONTH_DAY: Final = re.compile(r"([a-z]{3,9})\.?\s*(\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(\d{4}))?", re.ASCII)


#: What takes a due date away.
_NEVER: Final = ("", "none", "never")


class NotADate(ValueError):
    """These words name no day."""


def parse_optional_due_date(text: str, today: date) -> str:
    """Like `parse_due_date`; empty for words that say that there is none."""
    return "" if text.strip().lower() in _NEVER else parse_due_date(text, today)


def parse_due_date(text: str, today: date) -> str:
    """The day that is parse_optional_due_date, as tasks have it: ISO 8601. Raises `NotADate`.

    A date or time in ISO 8601 stays as it is.
    """
    words = " ".join(text.lower().split())
    if not words or len(text) > _MAX_LENGTH:
        raise NotADate
    if _ISO.fullmatch(text.strip()):
        return text.strip().replace(" ", "T", 1)
    try:
        day = _fixed(words, today) or _weekday(words, today) or _span(words, today) or _calendar(words, today)
    except (ValueError, OverflowError) as error:
        raise NotADate from error
    if day is None:
        raise NotADate
    return day.isoformat()


def _fixed(words: str, today: date) -> date | None:
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
    """The coming one, today included; with `next`, the one after that."""
    which, _, name = words.rpartition(" ")
    number = _only(name, _DAYS)
    if number is None or which not in ("", "this", "next", "on"):
        return None
    coming = today + timedelta((number - today.weekday()) % 7)
    return coming + timedelta(7) if which == "next" else coming


def _span(words: str, today: date) -> date | None:
    found = _SPAN.fullmatch(words)
    if found is None:
        return None
    count = 1 if found[1].startswith("a") else int(found[1])
    unit = found[2][0]
    if unit in "dw":
        return today + timedelta(count * (7 if unit == "w" else 1))
    return _months_later(today, count * (12 if unit == "y" else 1))


def _calendar(words: str, today: date) -> date | None:
    """A day of a month: the next such day, unless a year is named."""
    if found := _DAY_MONTH.fullmatch(words):
        day, name, year = found.groups()
    elif found := _MONTH_DAY.fullmatch(words):
        name, day, year = found.groups()
    else:
        return None
    number = _only(name, _MONTHS)
    if number is None:
        return None
    if year is not None:
        return date(int(year), number + 1, int(day))
    # There is a 29 February within eight years, and any other day within one.
    for later in range(9):
        try:
            that = date(today.year + later, number + 1, int(day))
        except ValueError:
            continue
        if that >= today:
            return that
    return None


def _only(word: str, names: tuple[str, ...]) -> int | None:
    """Which of the names begins with a word of at least three letters."""
    if len(word) < 3:
        return None
    return next((number for number, name in enumerate(names) if name.startswith(word)), None)


def _months_later(day: date, months: int) -> date:
    """The same day of a later month, or the last one that it has."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = _last_of_month(year, month + 1)
    return last.replace(day=min(day.day, last.day))


def _last_of_month(year: int, month: int) -> date:
    first_of_next = date(year + month // 12, month % 12 + 1, 1)
    return first_of_next - timedelta(1)


def is_overdue(due: str, now: datetime) -> bool:
    """Whether a due date is past: the day, or the moment if it names one."""
    moment = _moment(due)
    return due[:10] < now.date().isoformat() if moment is None else moment < now


def local_due_day(due: str) -> str:
    """The day of a due date, here."""
    moment = _moment(due)
    return due[:10] if moment is None else moment.date().isoformat()


def format_due(due: str, now: datetime) -> str:
    """A due date for people: in words if it is near, and in their own time."""
    moment = _moment(due)
    time = "" if moment is None else f" {moment:%H:%M}"
    day = date.fromisoformat(local_due_day(due))
    distance = (day - now.date()).days
    if -1 <= distance <= 1:
        return ("yesterday", "today", "tomorrow")[distance + 1] + time
    if 1 < distance < 7:
        return _DAYS[day.weekday()].capitalize() + time
    return day.isoformat() + time


def _moment(due: str) -> datetime | None:
    """The moment that a due date names, in the time here; nothing if it names only a day."""
    if len(due) <= 10:
        return None
    try:
        return datetime.fromisoformat(due).astimezone()
    except (ValueError, OverflowError):
        # No clock here reaches so far; the day will do.
        return None
