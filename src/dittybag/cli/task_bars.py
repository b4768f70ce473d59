"""Bar charts of completed tasks."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

import click
from msgspec import Struct

from dittybag.cli.error_output import wants_json
from dittybag.cli.output import clip_line, display_width, hint, pad, print_json
from dittybag.domain.tasks import TaskGroup

_NO_PROJECT: Final = "(no project)"
#: At most this many projects are drawn; `--json` has all of them.
_MAX_BARS: Final = 20
#: Maximum length of a bar, and of the label beside it.
_LENGTH: Final = 30
_LABEL: Final = 24


class _TaskCount(Struct, frozen=True):
    """The number of tasks of a project or priority, and how many of them are completed."""

    label: str
    total: int
    completed: int


def print_charts(groups: Sequence[TaskGroup]) -> None:
    """Print the number of tasks and of completed tasks by project and by priority."""
    projects = _counts((group.project, group) for group in groups)
    priorities = _counts((group.priority, group) for group in groups)
    total = sum(group.total for group in groups)
    completed = sum(group.completed for group in groups)
    by_project = sorted(projects.items(), key=lambda item: (-item[1].total, item[0] or ""))
    by_priority = sorted(priorities.items(), reverse=True)
    if wants_json():
        data: dict[str, Any] = {
            "by_project": [{"project": key, **_numbers(count)} for key, count in by_project],
            "by_priority": [{"priority": key, **_numbers(count)} for key, count in by_priority],
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
    _draw("project", [count for _, count in by_project])
    click.echo()
    _draw("priority", [count for _, count in by_priority])
    click.echo()
    click.echo(f"{completed:,} of {total:,} completed ({100 * completed // total}%)")


def _counts(groups: Iterable[tuple[Any, TaskGroup]]) -> dict[Any, _TaskCount]:
    counts: dict[Any, _TaskCount] = {}
    for key, group in groups:
        before = counts.get(key, _TaskCount("", 0, 0))
        label = _NO_PROJECT if key is None else clip_line(str(key))
        counts[key] = _TaskCount(label, before.total + group.total, before.completed + group.completed)
    return counts


def _numbers(count: _TaskCount) -> dict[str, int]:
    return {"total": count.total, "completed": count.completed}


def _draw(title: str, counts: Sequence[_TaskCount]) -> None:
    click.secho(title, bold=True)
    drawn = counts[:_MAX_BARS]
    longest = max(count.total for count in drawn)
    column = min(_LABEL, max(display_width(count.label) for count in drawn))
    numbers = [f"{count.completed:,}/{count.total:,}" for count in drawn]
    room = max(len(number) for number in numbers)
    for count, number in zip(drawn, numbers, strict=True):
        click.echo(f"  {pad(count.label, column)}  {number:>{room}}  {_bar(count, longest)}")
    if len(counts) > len(drawn):
        click.echo(f"  and {len(counts) - len(drawn):,} more; use --json to see all")


def _bar(count: _TaskCount, longest: int) -> str:
    """Return a bar whose length is the number of tasks and whose filled part is the completed ones."""
    full, empty = ("█", "░") if _supports_blocks() else ("#", ".")
    length = max(1, round(_LENGTH * count.total / longest))
    filled = length * count.completed // count.total
    return click.style(full * filled, fg="green") + empty * (length - filled)


def _supports_blocks() -> bool:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return sys.stdout.isatty() and encoding == "utf8"
