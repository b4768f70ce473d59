"""A click parameter type for past times such as "2h", "yesterday" or "2026-11-15 14:30"."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

import click

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


def parse_past_time(text: str, now: datetime) -> datetime:
    """Parse a time; without a time zone, it is in that of `now`. Raises `ValueError`."""
    words = " ".join(text.lower().split())
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if words in ("now", "today", "yesterday"):
        return {"now": now, "today": today, "yesterday": today - timedelta(days=1)}[words]
    if (found := _SPAN.fullmatch(words)) is not None:
        unit = next((long for short, long in _UNITS.items() if found[2] in (short, long, long[:-1])), None)
        if unit is not None:
            try:
                return now - timedelta(**{unit: int(found[1])})
            except OverflowError:
                raise ValueError from None
    given = datetime.fromisoformat(text.strip())
    return given if given.tzinfo is not None else given.replace(tzinfo=now.tzinfo)


class PastTime(click.ParamType[int, str]):
    """The value of --since, as microseconds since 1970."""

    name = "when"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(parse_past_time(value, datetime.now().astimezone()).timestamp() * 1_000_000)
        except (ValueError, OverflowError):
            self.fail(
                f"'{value}' is not a valid time; use 2h, 3d, yesterday, 2026-11-15 or '2026-11-15 14:30'",
                param,
                ctx,
            )
