"""Timestamps in files: ISO 8601, with microseconds in exports."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from dittybag.domain.times import iso

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def format_time(microseconds: int) -> str:
    """Format a time in microseconds, without loss of precision."""
    return f"{iso(microseconds)[:-1]}.{microseconds % 1_000_000:06d}Z"


def parse_time(text: str) -> int | None:
    """Parse a time, in UTC unless it has an offset. Returns microseconds, or `None` if it is not valid."""
    try:
        time = datetime.fromisoformat(text.strip())
        in_utc = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        microseconds = (in_utc - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        return None
    return microseconds if microseconds >= 0 else None
