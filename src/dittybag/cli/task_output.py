"""Tasks as rows, lines and JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from dittybag.cli.colours import AMBER, GREEN, GREY, RED, TEAL, VIOLET
from dittybag.cli.output import clip_line, format_time, print_list, print_result
from dittybag.cli.table import Column
from dittybag.cli.task_options import local_now, report_taken, taken_data
from dittybag.domain import due_dates
from dittybag.domain.entities import to_data
from dittybag.domain.tasks import (
    DEFAULT_ENERGY,
    DEFAULT_TIME_ESTIMATE,
    TITLE_LENGTH,
    Task,
    TaskListing,
    TaskStatus,
)
from dittybag.domain.times import iso

if TYPE_CHECKING:
    from dittybag.domain.claims import Claim
    from dittybag.services.task_service import TaskMark

_COLUMNS: Final = (
    Column("id", right=True),
    Column("priority", short="pri", right=True),
    Column("title", shrink="wrap"),
    Column("project", shrink="cut", rank=2),
    Column("status", rank=1),
    Column("assignee", shrink="cut", rank=3),
    Column("waits for", right=True, rank=4),
    Column("estimate", rank=5),
    Column("due"),
    Column("labels", shrink="cut", extra=True),
    Column("held by", shrink="cut", extra=True),
    Column("updated", extra=True),
)
#: Columns that are left out if they are empty.
_OPTIONAL_COLUMNS: Final = ("status", "assignee", "waits for", "estimate", "labels", "held by")
PRIORITY_STYLES: Final[Mapping[int, Mapping[str, Any]]] = {
    5: {"fg": RED, "bold": True},
    4: {"fg": AMBER},
    2: {"fg": GREY},
    1: {"fg": GREY},
}
STATUS_COLOURS: Final[Mapping[TaskStatus, int]] = {
    "doing": TEAL,
    "review": VIOLET,
    "done": GREEN,
    "dropped": GREY,
}


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


def print_completed(marks: Sequence[TaskMark], taken: dict[int, str]) -> None:
    """Print tasks that are completed now, and who held them."""
    now = local_now()
    data = [{**task_data(mark.task, now), **taken_data(taken, mark.task.id)} for mark in marks]
    verbs = {True: "Completed", False: "Already completed:"}
    lines = (f"{verbs[mark.changed]} {describe(mark.task, now)}" for mark in marks)
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
    cells = [_cells(task, now, waiting.get(task.id, 0), claims.get(task.id)) for task in tasks]
    has_status = any(task.status != "todo" for task in tasks)
    shown = [
        column
        for column in _COLUMNS
        if column.name not in _OPTIONAL_COLUMNS
        or (has_status if column.name == "status" else any(row[column.name] for row in cells))
    ]
    print_list(
        {"tasks": data, "more": more},
        shown,
        [tuple(row[column.name] for column in shown) for row in cells],
        empty=("No tasks found",),
        styles=lambda number: {"fg": GREY} if tasks[number].ended else {},
        cell_styles=lambda number, name: _cell_style(tasks[number], name, now),
    )


def _cells(task: Task, now: datetime, waits_for: int, claim: Claim | None) -> dict[str, str]:
    return {
        "id": str(task.id),
        "priority": str(task.priority),
        "title": clip_line(task.label, TITLE_LENGTH),
        "project": clip_line(task.project or ""),
        "status": task.status,
        "assignee": clip_line(task.assignee or ""),
        "waits for": str(waits_for or ""),
        "estimate": given_estimate(task),
        "due": format_due(task, now),
        "labels": clip_line(", ".join(task.labels)),
        "held by": "" if claim is None or claim.holder == task.assignee else clip_line(claim.holder),
        "updated": format_time(task.updated_at),
    }


def _cell_style(task: Task, name: str, now: datetime) -> Mapping[str, Any]:
    if name == "status":
        return {"fg": STATUS_COLOURS.get(task.status)}
    if task.ended:
        return {}
    if name == "priority":
        return PRIORITY_STYLES.get(task.priority, {})
    if name == "due":
        return task_style(task, now)
    return {"fg": {"labels": TEAL, "updated": GREY}.get(name)}


def given_estimate(task: Task) -> str:
    """Return the time estimate of a task; empty if nobody set one."""
    return "" if task.time_estimate == DEFAULT_TIME_ESTIMATE else clip_line(task.time_estimate)


def given_energy(task: Task) -> str:
    """Return the energy that a task requires; empty if nobody set it."""
    return "" if task.energy == DEFAULT_ENERGY else task.energy


def format_due(task: Task | TaskListing, now: datetime) -> str:
    """Return the due date of a task: in words on a terminal, and whether the task is overdue."""
    if task.due_date is None:
        return ""
    due = due_dates.format_due(task.due_date, now) if sys.stdout.isatty() else task.due_date
    return f"{due} (overdue)" if is_overdue(task, now) else due


def is_overdue(task: Task | TaskListing, now: datetime) -> bool:
    """Whether an open task should be done already."""
    return not task.ended and task.due_date is not None and due_dates.is_overdue(task.due_date, now)


def task_style(task: Task | TaskListing, now: datetime) -> dict[str, Any]:
    """Return the style of a task on a terminal."""
    if task.ended:
        return {"fg": GREY}
    if is_overdue(task, now):
        return {"fg": RED}
    is_today = task.due_date is not None and due_dates.local_due_day(task.due_date) == now.date().isoformat()
    return {"fg": AMBER} if is_today else {}


def format_until(moment: int) -> str:
    """Format the end of a claim: in words on a terminal, otherwise as in `2026-11-16 14:30`."""
    return due_dates.format_due(iso(moment), local_now()) if sys.stdout.isatty() else _local_minute(moment)


def format_ago(moment: int) -> str:
    """Format the time of a comment: relative on a terminal, otherwise as in `2026-11-16 14:30`."""
    return format_time(moment) if sys.stdout.isatty() else _local_minute(moment)


def _local_minute(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment // 1_000_000).astimezone():%Y-%m-%d %H:%M}"
