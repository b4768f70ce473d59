"""Conversion of stored times, microseconds since 1970, to ISO 8601."""

from __future__ import annotations

from functools import lru_cache
from time import gmtime, strftime
from typing import Final

_DAY_SECONDS: Final = 86_400


def iso(microseconds: int) -> str:
    """Format a time as UTC with seconds, as the contracts require."""
    day, second = divmod(microseconds // 1_000_000, _DAY_SECONDS)
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    return f"{_date(day)}T{hour:02}:{minute:02}:{second:02}Z"


@lru_cache(maxsize=256)
def _date(day: int) -> str:
    return strftime("%Y-%m-%d", gmtime(day * _DAY_SECONDS))
