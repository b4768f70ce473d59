"""The task contract: eight tools for the caller's own tasks, with JSON results and plain-text errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from dittybag.contracts.error_formats import plain_text_error
from dittybag.contracts.tool_specs import (
    ADDS,
    REPLACES,
    SETS_STATE,
    array_schema,
    choice_problems,
    object_schema,
    query_problems,
    tool,
)
from dittybag.domain import tasks
from dittybag.domain.errors import Invalid, Problem, require
from dittybag.domain.queries import TaskQuery
from dittybag.domain.tasks import ENERGIES, NO_PROJECT, Task
from dittybag.domain.times import iso
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.types import JsonObject, Text, ToolResult
from dittybag.services.caller import Caller
from dittybag.services.entity_writes import given_fields
from dittybag.services.workspace import WorkspaceSession

_FIELDS: Final = ("title", "notes", "both")
_GROUPS: Final = ("project", "priority", "status")
_ALL_GROUPS: Final = "all"
#: Maximum size of a list of tasks in a message. Several clients refuse messages of more than 10 MiB.
_MAX_LIST_BYTES: Final = 8 * 1024 * 1024
#: A character of a list takes at most this many bytes: four in the text, four in `structuredContent`.
_BYTES_PER_CHARACTER: Final = 8
#: Databases do not accept larger offsets.
_MAX_OFFSET: Final = 1 << 62


class TaskCreate(Struct, kw_only=True):
    title: Annotated[str, Meta(description="Task title (1-500 characters)")]
    project: Annotated[str, Meta(description="Project category (optional)")] | UnsetType = UNSET
    priority: (
        Annotated[int, Meta(ge=1, le=5, description="Priority (1=Someday, 5=Critical, default=3)")]
        | UnsetType
    ) = UNSET
    energy: (
        Annotated[
            str,
            Meta(
                description="Energy level required (default=medium)",
                extra_json_schema={"enum": list(ENERGIES)},
            ),
        ]
        | UnsetType
    ) = UNSET
    time_estimate: (
        Annotated[str, Meta(description="Time estimate (e.g., '1hr', default='1hr')")] | UnsetType
    ) = UNSET
    notes: Annotated[str, Meta(description="Additional notes (optional)")] | UnsetType = UNSET
    due_date: (
        Annotated[str, Meta(description="Due date (ISO 8601 date or date-time, optional)")] | UnsetType
    ) = UNSET


class TaskList(Struct, kw_only=True):
    project: Annotated[str, Meta(description="Filter by project")] | UnsetType = UNSET
    priority: Annotated[int, Meta(ge=1, le=5, description="Filter by priority (1-5)")] | UnsetType = UNSET
    show_completed: Annotated[bool, Meta(description="Include completed tasks (default=false)")] = False
    limit: Annotated[int, Meta(ge=1, le=1000, description="Maximum results (default=100, max=1000)")] = 100
    offset: Annotated[int, Meta(ge=0, description="Pagination offset (default=0)")] = 0


class TaskGet(Struct, kw_only=True):
    task_id: Annotated[int, Meta(description="Task ID to retrieve")]


class TaskUpdate(Struct, kw_only=True):
    task_id: Annotated[int, Meta(description="Task ID to update")]
    title: Annotated[str, Meta(description="New title")] | UnsetType = UNSET
    project: Annotated[str, Meta(description="New project")] | UnsetType = UNSET
    priority: Annotated[int, Meta(ge=1, le=5, description="New priority (1-5)")] | UnsetType = UNSET
    energy: (
        Annotated[str, Meta(description="New energy level", extra_json_schema={"enum": list(ENERGIES)})]
        | UnsetType
    ) = UNSET
    time_estimate: Annotated[str, Meta(description="New time estimate")] | UnsetType = UNSET
    notes: Annotated[str, Meta(description="New notes")] | UnsetType = UNSET
    due_date: (
        Annotated[str | None, Meta(description="New due date (ISO 8601; null or empty for none)")] | UnsetType
    ) = UNSET


class TaskComplete(Struct, kw_only=True):
    task_id: Annotated[int, Meta(description="Task ID to complete")]


class TaskDelete(Struct, kw_only=True):
    task_id: Annotated[int, Meta(description="Task ID to delete")]


class TaskSearch(Struct, kw_only=True):
    query: Annotated[str, Meta(description="Search keywords")]
    fields: Annotated[
        str,
        Meta(
            description="Fields to search (default=both for title+notes)",
            extra_json_schema={"enum": list(_FIELDS)},
        ),
    ] = "both"


class TaskStatsArguments(Struct, kw_only=True):
    group_by: (
        Annotated[
            str,
            Meta(
                description="Grouping field (project|priority|status, default=all)",
                extra_json_schema={"enum": [*_GROUPS, _ALL_GROUPS]},
            ),
        ]
        | UnsetType
    ) = UNSET


def _task(task: Task) -> JsonObject:
    return {
        "id": task.id,
        "user_id": task.user,
        "title": task.title,
        "project": task.project,
        "priority": task.priority,
        "energy": task.energy,
        "time_estimate": task.time_estimate,
        "notes": task.notes,
        "due_date": task.due_date,
        "completed": task.completed,
        "completed_at": None if task.completed_at is None else iso(task.completed_at),
        "created_at": iso(task.created_at),
        "updated_at": iso(task.updated_at),
    }


def _json_result(value: Any, structured: JsonObject | None = None) -> ToolResult:
    """Return a result in JSON with spaces, as the contract specifies."""
    # Imported here because nothing else needs JSON with spaces, and so the standard library.
    from json import dumps

    return ToolResult.from_text(dumps(value, ensure_ascii=False), structured=structured or value)


def _list_result(
    found: list[Task], note_if_cut: Callable[[int], str], total: int | None = None
) -> ToolResult:
    """Return as many tasks as a message holds. If there are more, a second text says so.

    `total`: the number of all tasks, if it is not that of `found`.
    """
    items = [_task(task) for task in found]
    whole = _json_result(items, {"tasks": items})
    (content,) = whole.content
    if isinstance(content, Text) and len(content.text) * _BYTES_PER_CHARACTER > _MAX_LIST_BYTES:
        items = items[: _fitting(items)]
        whole = _json_result(items, {"tasks": items})
    if len(items) == (len(found) if total is None else total):
        return whole
    return replace(whole, content=(*whole.content, Text(text=note_if_cut(len(items)))))


def _fitting(items: list[JsonObject]) -> int:
    """Return how many of the items fit into a message, as text and as structured content."""
    size = 0
    for count, item in enumerate(items):
        structured = encode(item)
        size += len(structured) + len(encode(structured.decode()))
        if size > _MAX_LIST_BYTES:
            return count
    return len(items)


_TASK: Final = object_schema(
    id="integer",
    user_id="string",
    title="string",
    project="string?",
    priority="integer",
    energy="string",
    time_estimate="string",
    notes="string?",
    due_date="string?",
    completed="boolean",
    completed_at="string?",
    created_at="string",
    updated_at="string",
)
_TASKS: Final = object_schema(tasks=array_schema({"type": "object"}))
_COUNTS: Final[JsonObject] = {"type": "object", "additionalProperties": {"type": "integer"}}


def _list_problems(priority: int | None = None, **others: Any) -> Iterable[Problem]:
    return tasks.problems(priority=priority)


def _owner(session: WorkspaceSession) -> Caller:
    """Return the caller, who sees only their own tasks in this contract."""
    return replace(session.caller, own_tasks_only=True)


_tool: Final = partial(tool, toolset="tasks", error_format=plain_text_error)


@_tool(
    title="Create task",
    description="Create a new task",
    arguments=TaskCreate,
    output=_TASK,
    check=tasks.problems,
    effect=ADDS,
)
async def task_create(session: WorkspaceSession, arguments: TaskCreate) -> ToolResult:
    task = await session.workspace.tasks.create(_owner(session), **given_fields(arguments))
    return _json_result(_task(task))


@_tool(
    title="List tasks",
    description="List tasks with optional filters",
    arguments=TaskList,
    output=_TASKS,
    check=_list_problems,
)
async def task_list(session: WorkspaceSession, arguments: TaskList) -> ToolResult:
    query = TaskQuery(
        user=session.caller.user,
        # Models pass an empty string for a filter that they do not use.
        project=arguments.project or None,
        priorities=() if arguments.priority is UNSET else (arguments.priority,),
        completed=None if arguments.show_completed else False,
        limit=arguments.limit,
        offset=min(arguments.offset, _MAX_OFFSET),
    )
    found = await session.workspace.tasks.page(_owner(session), query)
    return _list_result(
        found,
        lambda shown: (
            f"Only the first {shown:,} of these tasks fit into this result. "
            f"Use offset {arguments.offset + shown} to get the others."
        ),
    )


@_tool(
    title="Get task",
    description="Get a specific task by ID",
    arguments=TaskGet,
    output=_TASK,
)
async def task_get(session: WorkspaceSession, arguments: TaskGet) -> ToolResult:
    return _json_result(_task(await session.workspace.tasks.get(_owner(session), arguments.task_id)))


@_tool(
    title="Update task",
    description="Update a task's fields",
    arguments=TaskUpdate,
    output=_TASK,
    check=tasks.problems,
    effect=REPLACES,
)
async def task_update(session: WorkspaceSession, arguments: TaskUpdate) -> ToolResult:
    fields = given_fields(arguments, "task_id")
    if not fields:
        raise Invalid([Problem("", "Nothing to update: give at least one field")])
    task = await session.workspace.tasks.update(_owner(session), arguments.task_id, **fields)
    return _json_result(_task(task))


@_tool(
    title="Complete task",
    description="Mark a task as complete",
    arguments=TaskComplete,
    output=_TASK,
    effect=SETS_STATE,
)
async def task_complete(session: WorkspaceSession, arguments: TaskComplete) -> ToolResult:
    return _json_result(_task(await session.workspace.tasks.complete(_owner(session), arguments.task_id)))


@_tool(
    title="Delete task",
    description="Delete a task permanently",
    arguments=TaskDelete,
    output=object_schema(success="boolean", task_id="integer"),
    effect=REPLACES,
)
async def task_delete(session: WorkspaceSession, arguments: TaskDelete) -> ToolResult:
    task = await session.workspace.tasks.delete(_owner(session), arguments.task_id)
    return _json_result({"success": True, "task_id": task.id})


def _search_problems(query: str = "", fields: str = "both") -> list[Problem]:
    return [*query_problems(query), *choice_problems("fields", fields, _FIELDS)]


@_tool(
    title="Search tasks",
    description="Search tasks by keywords in title or notes",
    arguments=TaskSearch,
    output=_TASKS,
    check=_search_problems,
)
async def task_search(session: WorkspaceSession, arguments: TaskSearch) -> ToolResult:
    require(_search_problems(arguments.query, arguments.fields))
    total, found = await session.workspace.tasks.search(
        _owner(session),
        arguments.query,
        title=arguments.fields != "notes",
        notes=arguments.fields != "title",
        # Each text is in the message twice.
        max_bytes=_MAX_LIST_BYTES // 2,
    )
    return _list_result(
        found,
        lambda shown: (
            f"Only the first {shown:,} of {total:,} matching tasks fit into this result. "
            "Search for more words to find the others."
        ),
        total,
    )


def _stats_problems(group_by: str = "project") -> list[Problem]:
    return choice_problems("group_by", group_by, (*_GROUPS, _ALL_GROUPS))


@_tool(
    title="Task statistics",
    description="Get task statistics grouped by project, priority, or status",
    arguments=TaskStatsArguments,
    output={
        "type": "object",
        "properties": {
            "by_project": _COUNTS,
            "by_priority": _COUNTS,
            "by_status": _COUNTS,
            "total": {"type": "integer"},
            "completed": {"type": "integer"},
            "completion_rate": {"type": "number"},
        },
        "required": ["total", "completed", "completion_rate"],
    },
    check=_stats_problems,
)
async def task_stats(session: WorkspaceSession, arguments: TaskStatsArguments) -> ToolResult:
    group_by = _ALL_GROUPS if arguments.group_by is UNSET else arguments.group_by
    require(_stats_problems(group_by))
    selected = _GROUPS if group_by == _ALL_GROUPS else (group_by,)
    stats = await session.workspace.tasks.stats(_owner(session))
    projects: dict[str, int] = {}
    for name, count in stats.by_project.items():
        label = NO_PROJECT if name is None else name
        projects[label] = projects.get(label, 0) + count
    ranked = sorted(projects.items(), key=lambda item: (-item[1], item[0]))
    groups: dict[str, JsonObject] = {
        "project": dict(ranked),
        "priority": {str(name): stats.by_priority[name] for name in sorted(stats.by_priority, reverse=True)},
        "status": {"pending": stats.total - stats.completed, "completed": stats.completed},
    }
    rate = round(100 * stats.completed / stats.total, 2) if stats.total else 0
    return _json_result(
        {
            **{f"by_{name}": groups[name] for name in selected},
            "total": stats.total,
            "completed": stats.completed,
            "completion_rate": rate,
        }
    )


TOOLS: Final = (
    task_create,
    task_list,
    task_get,
    task_update,
    task_complete,
    task_delete,
    task_search,
    task_stats,
)
