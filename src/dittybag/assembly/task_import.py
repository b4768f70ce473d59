"""Read tasks of other programs from a file, a folder or standard input."""

from __future__ import annotations

import sys

from dittybag.assembly.import_export import STANDARD
from dittybag.exchange.task_input import MAX_BYTES, TaskInput
from dittybag.exchange.task_sources import TasksRead, read_task_file, read_tasks


def read_foreign_tasks(source: str, format: str | None) -> TasksRead:
    """Read tasks. Raises `SourceNotFound`, `SourceFailed` and `Invalid`.

    `format`: a key of `TASK_FORMATS` (default: detected).
    """
    if source == STANDARD:
        # A longer input is refused.
        return read_task_file(TaskInput("stdin", sys.stdin.buffer.read(MAX_BYTES + 1)), format)
    return read_tasks(source, format)
