"""Click parameter types for times such as "2h", "yesterday" or "2026-11-15 14:30"."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import click

from dittybag.cli.output import clip_line
from dittybag.domain.past_times import parse_past_time


class _TimeType(click.ParamType[int, str]):
    """A time, as microseconds since 1970."""

    name = "when"

    def __init__(self, parse: Callable[[str, datetime], int], problem: str) -> None:
        self._parse = parse
        self._problem = problem

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return self._parse(value, datetime.now().astimezone())
        except (ValueError, OverflowError):
            self.fail(f"'{clip_line(value)}' is not a valid time{self._problem}", param, ctx)


def parse_expiry(text: str, now: datetime) -> datetime:
    """Parse a time after `now`; without a time zone, it is in that of `now`. Raises `ValueError`."""
    found = re.fullmatch(r"([1-9]\d{0,4})\s*([hdwy])", text.strip().lower(), re.ASCII)
    if found is not None:
        hours = {"h": 1, "d": 24, "w": 7 * 24, "y": 365 * 24}[found[2]]
        return now + timedelta(hours=int(found[1]) * hours)
    given = datetime.fromisoformat(text.strip())
    given = given if given.tzinfo is not None else given.replace(tzinfo=now.tzinfo)
    if given <= now:
        raise ValueError
    return given


#: The value of --since and --before.
past_time: Final = _TimeType(parse_past_time, "; use 2h, 3d, yesterday, 2026-11-15 or '2026-11-15 14:30'")
#: The value of --expires.
expiry_time: Final = _TimeType(
    lambda text, now: int(parse_expiry(text, now).timestamp() * 1_000_000),
    " in the future; use 12h, 30d, 8w, 1y, 2027-01-01 or '2027-01-01 12:00'",
)
