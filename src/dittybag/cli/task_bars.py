"""Bar charts of completed tasks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from dittybag.cli.error_output import wants_json
from dittybag.cli.output import clip_line, display_width, hint, pad, print_json, terminal_safe
from dittybag.domain.tasks import NO_PROJECT, TaskCount, TaskGroup, count_tasks

#: At most this many projects are drawn; `--json` has all of them.
_MAX_BARS: Final = 20
#: Maximum length of a bar, and of the label beside it.
_LENGTH: Final = 30
_LABEL: Final = 24


def print_charts(groups: Sequence[TaskGroup]) -> None:
    """Print the number of tasks and of completed tasks by project and by priority."""
    counts = count_tasks(groups)
    total, completed = counts.total, counts.completed
    if wants_json():
        data: dict[str, Any] = {
            "by_project": [_to_data("project", count) for count in counts.by_project],
            "by_priority": [_to_data("priority", count) for count in counts.by_priority],
            "total": total,
            "completed": completed,
            "completion_rate": round(100 * completed / total, 2) if total else 0,
        }
        print_json(data)
        return
    if not total:
        click.echo("No tasks yet", err=True)
        hint("to add a task, run: dittybag task add TITLE")
        return
    _draw("project", counts.by_project)
    click.echo()
    _draw("priority", counts.by_priority)
    click.echo()
    click.echo(f"{completed:,} of {total:,} completed ({counts.share}%)")


def _to_data(name: str, count: TaskCount) -> dict[str, Any]:
    return {name: count.key, "total": count.total, "completed": count.completed}


def _label(count: TaskCount) -> str:
    return NO_PROJECT if count.key is None else terminal_safe(clip_line(str(count.key)))


def _draw(title: str, counts: Sequence[TaskCount]) -> None:
    click.secho(title, bold=True)
    drawn = counts[:_MAX_BARS]
    longest = max(count.total for count in drawn)
    column = min(_LABEL, max(display_width(_label(count)) for count in drawn))
    numbers = [f"{count.completed:,}/{count.total:,}" for count in drawn]
    room = max(len(number) for number in numbers)
    for count, number in zip(drawn, numbers, strict=True):
        click.echo(f"  {pad(_label(count), column)}  {number:>{room}}  {_bar(count, longest)}")
    if len(counts) > len(drawn):
        click.echo(f"  and {len(counts) - len(drawn):,} more; use --json to see all")


def _bar(count: TaskCount, longest: int) -> str:
    """Return a bar whose length is the number of tasks and whose filled part is the completed ones."""
    return progress_bar(count.completed, count.total, max(1, round(_LENGTH * count.total / longest)))


def progress_bar(completed: int, total: int, length: int) -> str:
    """Return a bar of this length, filled in proportion to the completed tasks."""
    full, empty = ("█", "░") if _supports_blocks() else ("#", ".")
    filled = length * completed // total
    return click.style(full * filled, fg="green") + empty * (length - filled)


def _supports_blocks() -> bool:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return sys.stdout.isatty() and encoding == "utf8"
