"""A task as a Markdown file for editing."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dittybag.cli.front_matter import format_document, parse_document
from dittybag.cli.task_options import local_now
from dittybag.domain import due_dates
from dittybag.domain.errors import Invalid, Problem
from dittybag.domain.tasks import Task


class _TaskFields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of the front matter, with the names of the options of `dittybag task update`."""

    title: str = ""
    status: str = ""
    priority: int = 0
    project: str = ""
    due: str = ""
    assignee: str = ""
    energy: str = ""
    estimate: str = ""
    labels: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    parent: int | str = ""
    blocked_by: tuple[int, ...] = ()


def format_task(task: Task) -> str:
    """Return the file of a task."""
    fields = {
        "title": task.title,
        "status": task.status,
        "priority": task.priority,
        "project": task.project or "",
        "due": task.due_date or "",
        "assignee": task.assignee or "",
        "energy": task.energy,
        "estimate": task.time_estimate,
        "labels": task.labels,
        "links": task.links,
        "parent": task.parent or "",
        "blocked_by": task.blocked_by,
    }
    return format_document(fields, task.notes or "", "The notes are below the second ---.")


def task_changes(task: Task, text: str) -> dict[str, Any]:
    """Return the fields of a task that a file changes. Without front matter, only its notes.

    Raises `Invalid`.
    """
    fields, notes = parse_document(text, _TaskFields)
    new: dict[str, Any] = {"notes": notes}
    if fields is not None:
        new |= {
            "title": fields.title,
            "status": fields.status,
            "priority": fields.priority,
            "project": fields.project,
            "due_date": _parse_due_date(fields.due, task),
            "assignee": fields.assignee,
            "energy": fields.energy,
            "time_estimate": fields.estimate,
            "labels": fields.labels,
            "links": fields.links,
            "parent": _parse_parent(fields.parent),
            "blocked_by": fields.blocked_by,
        }
    return {name: value for name, value in new.items() if (value or None) != (getattr(task, name) or None)}


def _parse_due_date(given: str, task: Task) -> str:
    if given == (task.due_date or ""):
        return given
    try:
        return due_dates.parse_optional_due_date(given, local_now().date())
    except due_dates.NotADate as error:
        problem = f"due: '{given}' is not a date. Examples: {due_dates.EXAMPLES}"
        raise Invalid([Problem("due", problem)]) from error


def _parse_parent(given: int | str) -> int | None:
    if isinstance(given, int) or not given:
        return given or None
    raise Invalid([Problem("parent", f"parent: '{given}' is not the number of a task")])
