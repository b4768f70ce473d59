"""A click parameter type for past times such as "2h", "yesterday" or "2026-11-15 14:30"."""

from __future__ import annotations

from datetime import datetime

import click

from dittybag.domain.past_times import parse_past_time


class PastTime(click.ParamType[int, str]):
    """The value of --since, as microseconds since 1970."""

    name = "when"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return parse_past_time(value, datetime.now().astimezone())
        except (ValueError, OverflowError):
            self.fail(
                f"'{value}' is not a valid time; use 2h, 3d, yesterday, 2026-11-15 or '2026-11-15 14:30'",
                param,
                ctx,
            )
