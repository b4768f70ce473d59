"""Tasks as rows, lines and JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from dittybag.cli.output import clip_line, print_list, print_result
from dittybag.cli.task_options import local_now, report_taken, taken_data
from dittybag.domain import due_dates
from dittybag.domain.entities import to_data
from dittybag.domain.tasks import DEFAULT_ENERGY, DEFAULT_TIME_ESTIMATE, Task
from dittybag.domain.times import iso

if TYPE_CHECKING:
    from dittybag.domain.claims import Claim
    from dittybag.services.task_service import TaskMark

#: The columns of a list that are left out if they are empty.
_OPTIONAL_COLUMNS: Final = ("status", "assignee", "waits for", "estimate")


def task_data(task: Task, now: datetime) -> dict[str, Any]:
    """Return a task for JSON output."""
    return {
        **to_data(task),
        "completed": task.completed,
        "overdue": is_overdue(task, now),
        "shared": task.project_id is not None,
    }


def claim_data(claim: Claim) -> dict[str, Any]:
    """Return a claim for JSON output."""
    return {
        "holder": claim.holder,
        "fence": claim.fence,
        "since": iso(claim.claimed_at),
        "until": iso(claim.until),
    }


def print_saved(
    task: Task, verb: str, taken: Mapping[int, str] | None = None, *, understood: Sequence[str] = ()
) -> None:
    """Print a task that was added or changed, and who held it.

    `understood`: the fields that were found in its title.
    """
    now, taken = local_now(), dict(taken or {})
    line = f"task {task.id} '{clip_line(task.title)}' ({', '.join(understood)})"
    print_result(
        {**task_data(task, now), **taken_data(taken, task.id)},
        f"{verb} {line if understood else describe(task, now)}",
    )
    report_taken(taken)


def print_marks(
    marks: Sequence[TaskMark], verb: str, otherwise: str, taken: Mapping[int, str] | None = None
) -> None:
    """Print tasks whose status was set, and who held them."""
    now, taken = local_now(), dict(taken or {})
    data = [{**task_data(mark.task, now), **taken_data(taken, mark.task.id)} for mark in marks]
    lines = (f"{verb if mark.changed else otherwise} {describe(mark.task, now)}" for mark in marks)
    print_result({"tasks": data}, *lines)
    report_taken(taken)


def describe(task: Task, now: datetime) -> str:
    """Return a task on one line."""
    due = f", due {format_due(task, now)}" if task.due_date and not task.ended else ""
    return f"task {task.id} '{clip_line(task.title)}'{due}"


def print_tasks(
    tasks: Sequence[Task],
    now: datetime,
    *,
    waiting: Mapping[int, int],
    claims: Mapping[int, Claim],
    more: bool,
) -> None:
    """Print a list of tasks. `waiting`: the number of open tasks that each waits for."""
    data = []
    for task in tasks:
        claim = claims.get(task.id)
        held = None if claim is None else claim_data(claim)
        data.append({**task_data(task, now), "waits_for": waiting.get(task.id, 0), "claim": held})
    cells = [_cells(task, now, waiting.get(task.id, 0)) for task in tasks]
    has_status = any(task.status != "todo" for task in tasks)
    shown = [
        name
        for name in (cells[0] if cells else ())
        if name not in _OPTIONAL_COLUMNS
        or (has_status if name == "status" else any(row[name] for row in cells))
    ]
    print_list(
        {"tasks": data, "more": more},
        shown,
        [tuple(row[name] for name in shown) for row in cells],
        empty=("No tasks found",),
        right=tuple(shown.index(name) for name in ("id", "priority", "waits for") if name in shown),
        shrinkable=tuple(shown.index(name) for name in ("title", "project", "assignee") if name in shown),
        styles=lambda number: task_style(tasks[number], now),
    )


def _cells(task: Task, now: datetime, waits_for: int) -> dict[str, str]:
    return {
        "id": str(task.id),
        "priority": str(task.priority),
        "title": clip_line(task.title),
        "project": clip_line(task.project or ""),
        "status": task.status,
        "assignee": clip_line(task.assignee or ""),
        "waits for": str(waits_for or ""),
        "estimate": given_estimate(task),
        "due": format_due(task, now),
    }


def given_estimate(task: Task) -> str:
    """Return the time estimate of a task; empty if nobody set one."""
    return "" if task.time_estimate == DEFAULT_TIME_ESTIMATE else clip_line(task.time_estimate)


def given_energy(task: Task) -> str:
    """Return the energy that a task requires; empty if nobody set it."""
    return "" if task.energy == DEFAULT_ENERGY else task.energy


def format_due(task: Task, now: datetime) -> str:
    """Return the due date of a task: in words on a terminal, and whether the task is overdue."""
    if task.due_date is None:
        return ""
    due = due_dates.format_due(task.due_date, now) if sys.stdout.isatty() else task.due_date
    return f"{due} (overdue)" if is_overdue(task, now) else due


def is_overdue(task: Task, now: datetime) -> bool:
    """Whether an open task should be done already."""
    return not task.ended and task.due_date is not None and due_dates.is_overdue(task.due_date, now)


def task_style(task: Task, now: datetime) -> dict[str, Any]:
    """Return the style of a task on a terminal."""
    if task.ended:
        return {"dim": True}
    if is_overdue(task, now):
        return {"fg": "red"}
    is_today = task.due_date is not None and due_dates.local_due_day(task.due_date) == now.date().isoformat()
    return {"fg": "yellow"} if is_today else {}


def format_local(moment: int) -> str:
    """Format a time in the local time zone, as in `2026-11-16 14:30`."""
    return f"{datetime.fromtimestamp(moment // 1_000_000).astimezone():%Y-%m-%d %H:%M}"
