"""Sizes, counts and relative times in words, the same in the shell and in the web UI."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("KiB", "MiB", "GiB")
#: Seconds of each unit of time, longest first.
_SPANS: Final = (
    (365 * 86400, "year"),
    (30 * 86400, "month"),
    (7 * 86400, "week"),
    (86400, "day"),
    (3600, "hour"),
    (60, "minute"),
)


def format_size(size: int) -> str:
    """Format a number of bytes in binary units, as in `1.5 MiB`, with at most one decimal."""
    if size < 1024:
        return format_count(size, "byte")
    amount, exponent = size / 1024, 0
    while round(amount, 1) >= 1024 and exponent + 1 < len(_UNITS):
        amount, exponent = amount / 1024, exponent + 1
    return f"{f'{amount:,.1f}'.removesuffix('.0')} {_UNITS[exponent]}"


def format_count(number: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun, as in `2 prompts`. `many` is an irregular plural."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def format_ago(then: int, now: int) -> str:
    """Format the time from `then` to `now`, both in microseconds since 1970, as in `3 minutes ago`."""
    seconds = (now - then) // 1_000_000
    for span, unit in _SPANS:
        if seconds >= span:
            return f"{format_count(seconds // span, unit)} ago"
    return "just now"
