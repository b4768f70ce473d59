"""Sizes, counts, dates and relative times in words, the same in the shell and in the web UI."""

from __future__ import annotations

from datetime import date, datetime
from time import localtime, strftime
from typing import Final

_SECOND: Final = 1_000_000
_WEEK: Final = 7 * 86400
_UNITS: Final = ("KiB", "MiB", "GiB")
#: Seconds of each unit of time, longest first.
_SPANS: Final = (
    (365 * 86400, "year"),
    (30 * 86400, "month"),
    (7 * 86400, "week"),
    (86400, "day"),
    (3600, "hour"),
    (60, "minute"),
)


def format_size(size: int) -> str:
    """Format a number of bytes in binary units, as in `1.5 MiB`, with at most one decimal."""
    if size < 1024:
        return format_count(size, "byte")
    amount, exponent = size / 1024, 0
    while round(amount, 1) >= 1024 and exponent + 1 < len(_UNITS):
        amount, exponent = amount / 1024, exponent + 1
    return f"{f'{amount:,.1f}'.removesuffix('.0')} {_UNITS[exponent]}"


def format_count(number: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun, as in `2 prompts`. `many` is an irregular plural."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def format_moment(microseconds: int) -> str:
    """Format a time in the time zone of this machine, as in `17 Nov 2026, 09:12`."""
    moment = localtime(microseconds / 1_000_000)
    return f"{moment.tm_mday} {strftime('%b %Y, %H:%M', moment)}"


def format_ago(then: int, now: int) -> str:
    """Format the time from `then` to `now`, both in microseconds since 1970, as in `3 minutes ago`."""
    passed = _format_span((now - then) // _SECOND)
    return f"{passed} ago" if passed else "just now"


def format_when(moment: int, now: int) -> str:
    """Format a time relative to `now` if less than a week lies between, otherwise as a local date."""
    if abs(now - moment) >= _WEEK * _SECOND:
        return format_date(_local_day(moment), _local_day(now))
    left = _format_span((moment - now) // _SECOND)
    return f"in {left}" if left else format_ago(moment, now)


def _local_day(moment: int) -> date:
    return datetime.fromtimestamp(moment // _SECOND).astimezone().date()


def format_date(day: date, today: date) -> str:
    """Format a date, as in `12 Nov`; with the year unless it is this year."""
    return f"{day.day} {day:%b}" if day.year == today.year else f"{day.day} {day:%b %Y}"


def _format_span(seconds: int) -> str:
    """Format a time span in its largest unit, as in `3 minutes`; empty if it is less than a minute."""
    for span, unit in _SPANS:
        if seconds >= span:
            return format_count(seconds // span, unit)
    return ""
