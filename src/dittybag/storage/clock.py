"""The clock of the stores."""

from __future__ import annotations

import time


def now_microseconds() -> int:
    return time.time_ns() // 1000
