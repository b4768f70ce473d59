"""Local time and relative times; due dates are re-exported from the domain."""

from __future__ import annotations

from datetime import datetime

from dittybag.domain.due_dates import (
    EXAMPLES,
    NotADate,
    format_due,
    is_overdue,
    local_due_day,
    parse_due_date,
    parse_optional_due_date,
)

__all__ = [
    "EXAMPLES",
    "NotADate",
    "ago",
    "format_due",
    "is_overdue",
    "local_due_day",
    "now",
    "parse_due_date",
    "parse_optional_due_date",
]


def now() -> datetime:
    """Return the current local time."""
    return datetime.now().astimezone()


def ago(then: int, now: int) -> str:
    """Format the time from `then` to `now`, both in microseconds since 1970."""
    seconds = (now - then) // 1_000_000
    if seconds < 60:
        return "just now"
    for size, word in (
        (365 * 86400, "year"),
        (30 * 86400, "month"),
        (7 * 86400, "week"),
        (86400, "day"),
        (3600, "hour"),
        (60, "minute"),
    ):
        if count := seconds // size:
            return f"{count} {word}{'s' if count > 1 else ''} ago"
    raise AssertionError("at least a minute has passed")
