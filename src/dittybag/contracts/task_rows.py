"""Tasks in results for agents: short rows, and what is around a task."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dittybag.contracts.tool_specs import array_schema
from dittybag.domain.claims import Claim
from dittybag.domain.errors import clip
from dittybag.domain.tasks import DEFAULT_ENERGY, DEFAULT_TIME_ESTIMATE, Comment, Task, TaskListing
from dittybag.domain.times import iso
from dittybag.protocol.types import JsonObject

if TYPE_CHECKING:
    from dittybag.domain.task_graph import GraphTask
    from dittybag.services.task_details import TaskDetails, TaskParts

_STRING: Final[JsonObject] = {"type": "string"}

ROW: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "ref": _STRING,
        "title": _STRING,
        "project": _STRING,
        "priority": {"type": "integer"},
        "due_date": _STRING,
        "status": _STRING,
        "assignee": _STRING,
        "labels": array_schema(_STRING),
        "waits_for": {"type": "integer"},
        "holder": _STRING,
        "until": _STRING,
    },
    "required": ["ref", "title", "priority", "status"],
}


def task_row(task: Task | TaskListing) -> JsonObject:
    """Return a task as lists show it."""
    row: JsonObject = {"ref": f"task:{task.id}", "title": task.title}
    if task.project is not None:
        row["project"] = task.project
    row["priority"] = task.priority
    if task.due_date is not None:
        row["due_date"] = task.due_date
    row["status"] = task.status
    if task.assignee is not None:
        row["assignee"] = task.assignee
    if task.labels:
        row["labels"] = list(task.labels)
    return row | (_listed_members(task) if isinstance(task, TaskListing) else {})


def _listed_members(task: TaskListing) -> JsonObject:
    waits: JsonObject = {"waits_for": task.waits_for} if task.waits_for else {}
    if task.holder is None or task.held_until is None or task.held_until <= time.time_ns() // 1000:
        return waits
    return waits | {"holder": task.holder, "until": iso(task.held_until)}


def claim_members(claim: Claim | None) -> JsonObject:
    """Return who holds a task and until when; nothing if nobody does."""
    return {} if claim is None else {"holder": clip(claim.holder, 100), "until": iso(claim.until)}


def task_fields(task: Task) -> JsonObject:
    """Return the fields of a task beside its texts and lists. Energy and estimate only if they were set."""
    described: JsonObject = {"status": task.status, "priority": task.priority}
    for name, default in (("energy", DEFAULT_ENERGY), ("time_estimate", DEFAULT_TIME_ESTIMATE)):
        if (value := getattr(task, name)) != default:
            described[name] = value
    for name in ("project", "due_date", "assignee"):
        if (value := getattr(task, name)) is not None:
            described[name] = value
    return described | ({} if task.completed_at is None else {"completed_at": iso(task.completed_at)})


def details_members(details: TaskDetails) -> JsonObject:
    """Return who holds a task, what it is a part of and how many of its parts are done."""
    members = claim_members(details.claim)
    if details.part_counts.total:
        members["parts"] = _progress(details.part_counts)
    if details.parent is not None:
        members["parent"] = brief(details.parent) | {"parts": _progress(details.siblings)}
    return members


def _progress(parts: TaskParts) -> str:
    return f"{parts.ended} of {parts.total} done"


def brief(task: Task | GraphTask) -> JsonObject:
    """Return a task that is named beside another one."""
    return {"ref": f"task:{task.id}", "title": clip(task.title, 100), "status": task.status}


def comment_rows(comments: Sequence[Comment]) -> list[JsonObject]:
    return [{"at": iso(item.at), "author": clip(item.author, 60), "text": item.text} for item in comments]
