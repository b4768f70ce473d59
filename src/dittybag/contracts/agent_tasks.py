"""The tools `task_add`, `task_list` and `task_update`: the caller's tasks, with dates in words."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from dittybag.contracts.argument_items import parse_items
from dittybag.contracts.error_formats import bounded_json_error
from dittybag.contracts.prompt_store import json_result
from dittybag.contracts.references import Ref, find_item
from dittybag.contracts.result_size import list_result, rest_of
from dittybag.contracts.tool_specs import ADDS, REPLACES, ToolCall, array_schema, tool
from dittybag.domain import tasks
from dittybag.domain.errors import Invalid, Problem, clip, require
from dittybag.domain.tasks import ENERGIES, NO_PROJECT, Task, TaskFilter, TaskListing
from dittybag.protocol.types import JsonObject, ToolResult
from dittybag.services.entity_writes import given_fields

#: Tasks that one call can add.
_MAX_ADDED: Final = 100
#: Databases do not accept larger offsets.
_MAX_OFFSET: Final = 1 << 62

_Priority = Annotated[int, Meta(ge=1, le=5)]
_Energy = Annotated[str, Meta(extra_json_schema={"enum": list(ENERGIES)})]


class NewTask(Struct, kw_only=True, forbid_unknown_fields=True):
    title: str
    notes: str | UnsetType = UNSET
    project: str | UnsetType = UNSET
    due_date: str | UnsetType = UNSET
    priority: _Priority | UnsetType = UNSET
    energy: _Energy | UnsetType = UNSET
    time_estimate: str | UnsetType = UNSET


#: Written by hand because it is slow to generate when a server starts.
_NEW_TASK: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "notes": {"type": "string"},
        "project": {"type": "string"},
        "due_date": {"type": "string"},
        "priority": {"type": "integer", "minimum": 1, "maximum": 5},
        "energy": {"type": "string", "enum": list(ENERGIES)},
        "time_estimate": {"type": "string"},
    },
    "required": ["title"],
    "additionalProperties": False,
}


class AddTasks(Struct, kw_only=True, forbid_unknown_fields=True):
    tasks: Annotated[
        list[Any], Meta(min_length=1, max_length=_MAX_ADDED, extra_json_schema={"items": _NEW_TASK})
    ]


class ListTasks(Struct, kw_only=True, forbid_unknown_fields=True):
    project: str | UnsetType = UNSET
    priority: _Priority | UnsetType = UNSET
    due_by: str | UnsetType = UNSET
    done: bool = False
    order: Literal["priority", "due", "newest"] = "priority"
    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    offset: Annotated[int, Meta(ge=0)] = 0


class UpdateTask(Struct, kw_only=True, forbid_unknown_fields=True):
    ref: Annotated[Ref, Meta(description="task:12")]
    done: bool | UnsetType = UNSET
    title: str | UnsetType = UNSET
    notes: str | UnsetType = UNSET
    project: str | UnsetType = UNSET
    due_date: str | UnsetType | None = UNSET
    priority: _Priority | UnsetType = UNSET
    energy: _Energy | UnsetType = UNSET
    time_estimate: str | UnsetType = UNSET


_ROW: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "ref": {"type": "string"},
        "title": {"type": "string"},
        "project": {"type": "string"},
        "priority": {"type": "integer"},
        "due_date": {"type": "string"},
        "done": {"type": "boolean"},
    },
    "required": ["ref", "title", "priority", "done"],
}


def _row(task: Task | TaskListing) -> JsonObject:
    row: JsonObject = {"ref": f"task:{task.id}", "title": task.title}
    if task.project is not None:
        row["project"] = task.project
    row["priority"] = task.priority
    if task.due_date is not None:
        row["due_date"] = task.due_date
    return row | {"done": task.completed}


_tool: Final = partial(tool, toolset="tasks", error_format=bounded_json_error)


@_tool(
    title="Add tasks",
    description=(
        "Use when something is to be done later: adds one or several tasks. due_date in words (tomorrow, "
        "fri) or ISO; priority 5 is critical"
    ),
    arguments=AddTasks,
    output={
        "type": "object",
        "properties": {"added": array_schema(_ROW), "more": {"type": "string"}},
        "required": ["added"],
    },
    effect=ADDS,
    meta={"anthropic/alwaysLoad": True},
)
async def task_add(call: ToolCall, arguments: AddTasks) -> ToolResult:
    drafts, problems = [], []
    for index, item in enumerate(parse_items("tasks", arguments.tasks, NewTask, _NEW_TASK)):
        draft = given_fields(item)
        try:
            draft = _with_due_date(draft)
        except Invalid as error:
            problems += [f"tasks[{index}]: {problem.message}" for problem in error.problems]
            del draft["due_date"]
        problems += [f"tasks[{index}]: {problem.message}" for problem in tasks.problems(**draft)]
        drafts.append(draft)
    require(Problem("tasks", problem) for problem in problems)
    added = await call.workspace.tasks.create_all(call.caller, drafts)
    return list_result(
        "added",
        [_row(task) for task in added],
        lambda shown: {} if shown == len(added) else {"more": f"{len(added) - shown} more were added"},
    )


@_tool(
    title="List tasks",
    description=(
        "Use to see what is to be done: short rows; read gives notes. project may be '(no project)'; due_by "
        "in words or ISO"
    ),
    arguments=ListTasks,
    output={
        "type": "object",
        "properties": {
            "tasks": array_schema(_ROW),
            "total": {"type": "integer"},
            "more": {"type": "string"},
            "next_offset": {"type": "integer"},
        },
        "required": ["tasks", "total"],
    },
)
async def task_list(call: ToolCall, arguments: ListTasks) -> ToolResult:
    # Models pass an empty string for a filter that they do not use.
    project = None if arguments.project is UNSET else arguments.project or None
    due_by = None if arguments.due_by is UNSET else _date("due_by", arguments.due_by) or None
    found = await call.workspace.tasks.listing(
        call.caller,
        TaskFilter(
            completed=arguments.done,
            project="" if project == NO_PROJECT else project,
            priority=None if arguments.priority is UNSET else arguments.priority,
            due_by=None if due_by is None else due_by[:10],
        ),
        order=arguments.order,
        limit=arguments.limit,
        offset=min(arguments.offset, _MAX_OFFSET),
    )
    return list_result(
        "tasks",
        [_row(task) for task in found.tasks],
        lambda shown: {"total": found.total} | rest_of(found.total, arguments.offset, shown),
    )


@_tool(
    title="Update task",
    description=(
        "Use to change, complete (done: true) or reopen (done: false) a task; omitted fields stay; an empty "
        "text clears notes, project or due_date"
    ),
    arguments=UpdateTask,
    output=_ROW,
    check=tasks.problems,
    effect=REPLACES,
)
async def task_update(call: ToolCall, arguments: UpdateTask) -> ToolResult:
    task = await find_item(call, arguments.ref, (Task,))
    if not isinstance(task, Task):
        raise Invalid([Problem("ref", f"ref '{clip(arguments.ref)}' is not a task")])
    fields = _with_due_date(given_fields(arguments, "ref"))
    if not fields:
        raise Invalid([Problem("", "Nothing to update: give at least one field")])
    return json_result(_row(await call.workspace.tasks.update(call.caller, task.id, **fields)))


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
