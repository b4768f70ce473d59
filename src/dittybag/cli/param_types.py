"""Click parameter types for times such as "2h", "yesterday" or "2026-11-15 14:30"."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import click

from dittybag.cli.output import clip_line

_UNITS: Final = {
    "s": "seconds",
    "sec": "seconds",
    "m": "minutes",
    "min": "minutes",
    "h": "hours",
    "d": "days",
    "w": "weeks",
}


class _TimeType(click.ParamType[int, str]):
    """A time, as microseconds since 1970."""

    name = "when"

    def __init__(self, parse: Callable[[str, datetime], datetime], problem: str) -> None:
        self._parse = parse
        self._problem = problem

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(self._parse(value, datetime.now().astimezone()).timestamp() * 1_000_000)
        except (ValueError, OverflowError):
            self.fail(f"'{clip_line(value)}' is not a valid time{self._problem}", param, ctx)


def parse_past_time(text: str, now: datetime) -> datetime:
    """Parse a time; without a time zone, it is in that of `now`. Raises `ValueError`."""
    words = " ".join(text.lower().split())
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if words in ("now", "today", "yesterday"):
        return {"now": now, "today": today, "yesterday": today - timedelta(days=1)}[words]
    if (found := re.fullmatch(r"(\d{1,6})\s*([a-z]+)(?:\s+ago)?", words)) is not None:
        unit = next((long for short, long in _UNITS.items() if found[2] in (short, long, long[:-1])), None)
        if unit is not None:
            return now - timedelta(**{unit: int(found[1])})
    return _parse_iso(text, now)


def parse_expiry(text: str, now: datetime) -> datetime:
    """Parse a time after `now`; without a time zone, it is in that of `now`. Raises `ValueError`."""
    found = re.fullmatch(r"([1-9]\d{0,4})\s*([hdwy])", text.strip().lower(), re.ASCII)
    if found is not None:
        hours = {"h": 1, "d": 24, "w": 7 * 24, "y": 365 * 24}[found[2]]
        return now + timedelta(hours=int(found[1]) * hours)
    given = _parse_iso(text, now)
    if given <= now:
        raise ValueError
    return given


def _parse_iso(text: str, now: datetime) -> datetime:
    given = datetime.fromisoformat(text.strip())
    return given if given.tzinfo is not None else given.replace(tzinfo=now.tzinfo)


#: The value of --since and --before.
past_time: Final = _TimeType(parse_past_time, "; use 2h, 3d, yesterday, 2026-11-15 or '2026-11-15 14:30'")
#: The value of --expires.
expiry_time: Final = _TimeType(
    parse_expiry, " in the future; use 12h, 30d, 8w, 1y, 2027-01-01 or '2027-01-01 12:00'"
)
