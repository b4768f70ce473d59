"""Times as files have them: ISO 8601, to the microsecond where they are ours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from dittybag.domain.times import iso

_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def precise(microseconds: int) -> str:
    """A time without any loss."""
    return f"{iso(microseconds)[:-1]}.{microseconds % 1_000_000:06d}Z"


def moment(text: str) -> int | None:
    """The time that a text means, which is UTC unless it says otherwise; nothing if it means none."""
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    try:
        found = ((time if time.tzinfo is not None else time.replace(tzinfo=UTC)) - _BEGINNING) // _MICROSECOND
    except OverflowError:
        return None
    return found if found >= 0 else None
