"""Parsing of past times such as "2h", "yesterday" or "2026-11-15 14:30"."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

_SPAN: Final = re.compile(r"(\d{1,6})\s*([a-z]+)(?:\s+ago)?")
_UNITS: Final = {
    "s": "seconds",
    "sec": "seconds",
    "m": "minutes",
    "min": "minutes",
    "h": "hours",
    "d": "days",
    "w": "weeks",
}


def parse_past_time(text: str, now: datetime) -> int:
    """Return a time in microseconds since 1970. Without a time zone, it is in that of `now`.

    Raises `ValueError` and `OverflowError`.
    """
    return int(_parse(text, now).timestamp() * 1_000_000)


def _parse(text: str, now: datetime) -> datetime:
    words = " ".join(text.lower().split())
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if words in ("now", "today", "yesterday"):
        return {"now": now, "today": today, "yesterday": today - timedelta(days=1)}[words]
    if (found := _SPAN.fullmatch(words)) is not None:
        unit = next((long for short, long in _UNITS.items() if found[2] in (short, long, long[:-1])), None)
        if unit is not None:
            return now - timedelta(**{unit: int(found[1])})
    given = datetime.fromisoformat(text.strip())
    return given if given.tzinfo is not None else given.replace(tzinfo=now.tzinfo)
