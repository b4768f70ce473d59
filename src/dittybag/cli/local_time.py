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
