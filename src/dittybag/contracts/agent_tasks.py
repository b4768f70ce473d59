"""The tools `task_add`, `task_list` and `task_update`: plans, lists and changes, with dates in words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from dittybag.contracts.argument_items import parse_items
from dittybag.contracts.error_formats import bounded_json_error
from dittybag.contracts.references import Ref, find_task, require_projects, task_number
from dittybag.contracts.result_size import list_result, rest_of
from dittybag.contracts.task_rows import ROW, claim_members, task_row
from dittybag.contracts.tool_specs import ADDS, REPLACES, ToolCall, array_schema, json_result, tool
from dittybag.domain import tasks
from dittybag.domain.errors import Invalid, Problem, clip, require
from dittybag.domain.task_drafts import MAX_DRAFTS, TaskDraft
from dittybag.domain.tasks import ENERGIES, NO_PROJECT, STATUSES, Task, TaskFilter
from dittybag.protocol.types import JsonObject, ToolResult
from dittybag.services.entity_writes import given_fields

#: Databases do not accept larger offsets.
_MAX_OFFSET: Final = 1 << 62

_Priority = Annotated[int, Meta(ge=1, le=5)]
_Energy = Annotated[str, Meta(extra_json_schema={"enum": list(ENERGIES)})]
_Status = Annotated[str, Meta(extra_json_schema={"enum": list(STATUSES)})]

#: The number of a claim, from `task_next`.
Fence = Annotated[int, Meta(ge=1)]


class NewTask(Struct, kw_only=True, forbid_unknown_fields=True):
    title: str
    key: str | UnsetType = UNSET
    blocked_by: list[str] | UnsetType = UNSET
    parent: str | UnsetType = UNSET
    notes: str | UnsetType = UNSET
    project: str | UnsetType = UNSET
    due_date: str | UnsetType = UNSET
    priority: _Priority | UnsetType = UNSET
    assignee: str | UnsetType = UNSET
    labels: list[str] | UnsetType = UNSET
    links: list[str] | UnsetType = UNSET
    energy: _Energy | UnsetType = UNSET
    time_estimate: str | UnsetType = UNSET


_STRING: Final[JsonObject] = {"type": "string"}
_STRINGS: Final[JsonObject] = {"type": "array", "items": _STRING}
#: Written by hand because it is slow to generate when a server starts.
_NEW_TASK: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "title": _STRING,
        "key": _STRING,
        "blocked_by": _STRINGS,
        "parent": _STRING,
        "notes": _STRING,
        "project": _STRING,
        "due_date": _STRING,
        "priority": {"type": "integer", "minimum": 1, "maximum": 5},
        "assignee": _STRING,
        "labels": _STRINGS,
        "links": _STRINGS,
        "energy": {"type": "string", "enum": list(ENERGIES)},
        "time_estimate": _STRING,
    },
    "required": ["title"],
    "additionalProperties": False,
}


class AddTasks(Struct, kw_only=True, forbid_unknown_fields=True):
    tasks: Annotated[
        list[Any], Meta(min_length=1, max_length=MAX_DRAFTS, extra_json_schema={"items": _NEW_TASK})
    ]


class ListTasks(Struct, kw_only=True, forbid_unknown_fields=True):
    status: _Status | UnsetType = UNSET
    ready: bool = False
    project: str | UnsetType = UNSET
    label: str | UnsetType = UNSET
    assignee: str | UnsetType = UNSET
    parent: str | UnsetType = UNSET
    priority: _Priority | UnsetType = UNSET
    due_by: str | UnsetType = UNSET
    order: Literal["priority", "due", "newest"] = "priority"
    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    offset: Annotated[int, Meta(ge=0)] = 0


class UpdateTask(Struct, kw_only=True, forbid_unknown_fields=True):
    ref: Annotated[Ref, Meta(description="task:12")]
    fence: Fence | UnsetType = UNSET
    status: _Status | UnsetType = UNSET
    comment: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    notes: str | UnsetType = UNSET
    project: str | UnsetType = UNSET
    due_date: str | UnsetType | None = UNSET
    priority: _Priority | UnsetType = UNSET
    assignee: str | UnsetType = UNSET
    blocked_by: list[str] | UnsetType = UNSET
    parent: str | UnsetType = UNSET
    labels: list[str] | UnsetType = UNSET
    links: list[str] | UnsetType = UNSET
    energy: _Energy | UnsetType = UNSET
    time_estimate: str | UnsetType = UNSET


task_tool: Final = partial(tool, toolset="tasks", error_format=bounded_json_error)


@task_tool(
    title="Add tasks",
    description=(
        "Use when something is to be done later: adds a plan of tasks, all or none. key names a task for "
        "blocked_by and parent of others, which also take task:12; due_date in words (tomorrow, fri) or ISO; "
        "priority 5 is critical"
    ),
    arguments=AddTasks,
    output={
        "type": "object",
        "properties": {"added": array_schema(ROW), "more": {"type": "string"}},
        "required": ["added"],
    },
    effect=ADDS,
    meta={"anthropic/alwaysLoad": True},
)
async def task_add(call: ToolCall, arguments: AddTasks) -> ToolResult:
    given, problems = [], []
    for index, item in enumerate(parse_items("tasks", arguments.tasks, NewTask, _NEW_TASK)):
        fields = given_fields(item)
        try:
            fields = _with_due_date(fields)
        except Invalid as error:
            problems += [f"tasks[{index}]: {problem.message}" for problem in error.problems]
            del fields["due_date"]
        problems += [f"tasks[{index}]: {problem.message}" for problem in tasks.problems(**fields)]
        given.append(fields)
    require(Problem("tasks", problem) for problem in problems)
    await require_projects(
        call, dict.fromkeys(fields["project"] for fields in given if fields.get("project"))
    )
    added = await call.workspace.tasks.plan(call.caller, [_draft(fields) for fields in given])
    return list_result(
        "added",
        [task_row(task) for task in added],
        lambda shown: {} if shown == len(added) else {"more": f"{len(added) - shown} more were added"},
    )


def _draft(fields: dict[str, Any]) -> TaskDraft:
    parent = fields.pop("parent", "")
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value or None for name, value in fields.items()
    }
    values |= {"key": fields.get("key", ""), "parent": _reference(parent) if parent else None}
    return TaskDraft(**values | {"blocked_by": tuple(map(_reference, fields.get("blocked_by", ())))})


def _reference(text: str) -> str | int:
    """Return the number of a task that is named as `task:12`; other texts are keys."""
    number = task_number(text) if text.strip().startswith("task:") else None
    return text if number is None else number


@task_tool(
    title="List tasks",
    description=(
        "Use to see what is to be done: short rows; read gives the rest. Without status, open tasks; ready: "
        "to do, waiting for nothing. project may be '(no project)'; due_by in words or ISO"
    ),
    arguments=ListTasks,
    output={
        "type": "object",
        "properties": {
            "tasks": array_schema(ROW),
            "total": {"type": "integer"},
            "more": {"type": "string"},
            "next_offset": {"type": "integer"},
        },
        "required": ["tasks", "total"],
    },
)
async def task_list(call: ToolCall, arguments: ListTasks) -> ToolResult:
    chosen = _filter(arguments)
    found = await call.workspace.tasks.listing(
        call.caller,
        chosen,
        order=arguments.order,
        limit=arguments.limit,
        offset=min(arguments.offset, _MAX_OFFSET),
    )
    if chosen.project and not found.total:
        # Tasks of the task contract may name anything as their project.
        await require_projects(call, [chosen.project])
    if chosen.label and not found.total:
        await call.workspace.tasks.require_label(call.caller, chosen.label)
    return list_result(
        "tasks",
        [task_row(task) for task in found.tasks],
        lambda shown: {"total": found.total} | rest_of(found.total, arguments.offset, shown),
    )


def _filter(arguments: ListTasks) -> TaskFilter:
    # Models pass an empty string for a filter that they do not use.
    given = {name: value for name, value in given_fields(arguments).items() if value != ""}
    due_by = _date("due_by", given["due_by"])[:10] if "due_by" in given else None
    project = given.get("project")
    statuses: Any = ("todo",) if arguments.ready else _OPEN
    if "status" in given:
        if arguments.ready and given["status"] != "todo":
            raise Invalid([Problem("status", "status must be todo, or absent, with ready: true")])
        statuses = (given["status"],)
    return TaskFilter(
        statuses=statuses,
        waiting=False if arguments.ready else None,
        project="" if project == NO_PROJECT else project,
        label=given.get("label"),
        assignee=given.get("assignee"),
        parent=_number("parent", given["parent"]) if "parent" in given else None,
        priority=given.get("priority"),
        due_by=due_by,
    )


_OPEN: Final = tuple(status for status in STATUSES if status not in tasks.ENDED)


@task_tool(
    title="Update task",
    description=(
        "Use to change a task, comment on it, or renew its claim (fence alone); omitted fields stay; an "
        "empty text clears one"
    ),
    arguments=UpdateTask,
    output=ROW,
    check=tasks.problems,
    effect=REPLACES,
)
async def task_update(call: ToolCall, arguments: UpdateTask) -> ToolResult:
    task = await find_task(call, arguments.ref)
    fields = _with_edges(_with_due_date(given_fields(arguments, "ref")))
    if not fields:
        raise Invalid([Problem("", "Nothing to update: give at least one field")])
    if (project := fields.get("project")) and project != task.project:
        await require_projects(call, [project])
    updated = await call.workspace.tasks.update(call.caller, task.id, **fields)
    return json_result(task_row(updated) | await _claim_of(call, updated, arguments.fence))


async def _claim_of(call: ToolCall, task: Task, fence: int | UnsetType) -> JsonObject:
    """Return until when the caller holds a task, if it named a fence."""
    if fence is UNSET:
        return {}
    return claim_members((await call.workspace.task_queue.claims_of(call.caller, [task.id])).get(task.id))


def _with_edges(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a task with the numbers of other tasks. Raises `Invalid`."""
    if "blocked_by" in fields:
        fields = fields | {"blocked_by": _numbers("blocked_by", fields["blocked_by"])}
    if "parent" in fields:
        fields = fields | {"parent": _number("parent", fields["parent"]) if fields["parent"] else None}
    return fields


def _numbers(field: str, refs: Sequence[str]) -> tuple[int, ...]:
    return tuple(_number(field, ref) for ref in refs)


def _number(field: str, ref: str) -> int:
    number = task_number(ref)
    if number is None:
        raise Invalid([Problem(field, f"{field} '{clip(ref, 60)}' is not a task; use for example task:12")])
    return number


def _with_due_date(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a task with its due date in ISO 8601. Raises `Invalid`."""
    if "due_date" not in fields:
        return fields
    return fields | {"due_date": _date("due_date", fields["due_date"] or "")}


def _date(field: str, text: str) -> str:
    """Return a date in ISO 8601; empty for no date. Raises `Invalid`."""
    # Imported here because few calls have dates.
    from datetime import datetime

    from dittybag.domain.due_dates import EXAMPLES, NotADate, parse_optional_due_date

    try:
        return parse_optional_due_date(text, datetime.now().astimezone().date())
    except NotADate:
        problem = f"{field} '{clip(text, 60)}' is not a date; use for example {EXAMPLES}"
        raise Invalid([Problem(field, problem)]) from None
