"""Output of the benchmarks: tables, progress, and a description of the machine."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def print_progress(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)


def describe_machine() -> str:
    system, python_version = platform.system(), platform.python_version()
    return f"{system} {platform.machine()}, {os.cpu_count()} cores, Python {python_version}"
