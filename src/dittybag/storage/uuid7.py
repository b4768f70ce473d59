"""Ids for new entities: version 7 UUIDs, which sort by creation time."""

from __future__ import annotations

import os


def uuid7(now: int) -> str:
    """Return a new id. `now`: microseconds since 1970."""
    value = (now // 1000) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
