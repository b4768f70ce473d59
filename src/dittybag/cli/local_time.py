"""What time it is here, and how long ago something was. What due dates mean is in the domain."""

from __future__ import annotations

from datetime import datetime

from dittybag.domain.due_dates import EXAMPLES, NotADate, due_date, local_due_day, format_due, is_overdue, meant

__all__ = ["EXAMPLES", "NotADate", "ago", "due_date", "due_day", "due_words", "is_overdue", "meant", "now"]


def now() -> datetime:
    """The time here."""
    return datetime.now().astimezone()


def ago(then: int, now: int) -> str:
    """How long ago something was; both in microseconds since 1970."""
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
    raise AssertionError("there is at least a minute")
