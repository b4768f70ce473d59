"""Times: microseconds since 1970 inside, ISO 8601 outside."""

from __future__ import annotations

from time import gmtime, strftime


def iso(microseconds: int) -> str:
    """A time as the contracts show it: UTC, to the second."""
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(microseconds // 1_000_000))
