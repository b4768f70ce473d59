"""The tools `task_next`, `task_done` and `task_release`: claim a ready task, finish it, or give it back."""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from dittybag.contracts.agent_tasks import Fence, task_tool
from dittybag.contracts.references import Ref, find_task, require_projects
from dittybag.contracts.result_size import MAX_TOKENS, take_fitting, text_piece
from dittybag.contracts.task_rows import ROW, brief, comment_rows, task_fields, task_row
from dittybag.contracts.tool_specs import ADDS, REPLACES, ToolCall, array_schema, json_result
from dittybag.domain.claims import DEFAULT_LEASE, MAX_LEASE, MAX_WAIT, MIN_LEASE, parse_duration
from dittybag.domain.errors import Invalid, Problem, clip
from dittybag.domain.projects import DEFAULT_PROJECT, NEW_PROJECT
from dittybag.domain.tasks import LABEL_LENGTH, MAX_LABELS, Comment, Task
from dittybag.domain.times import iso
from dittybag.protocol.types import JsonObject, ToolResult
from dittybag.services.caller import Caller
from dittybag.services.task_queue import ClaimedTask, ClaimRequest
from dittybag.services.workspace import Workspace

#: The room for a claimed task in characters. Results have everything twice.
_ROOM: Final = MAX_TOKENS - 500
#: Comments that are shown with what was done before, at most this many of each task, the last ones.
_LAST_COMMENTS: Final = 3


class NextTask(Struct, kw_only=True, forbid_unknown_fields=True):
    project: str | UnsetType = UNSET
    labels: list[str] | UnsetType = UNSET
    ref: Ref | UnsetType = UNSET
    lease: str = "15m"
    wait: str | UnsetType = UNSET


class FinishTask(Struct, kw_only=True, forbid_unknown_fields=True):
    ref: Ref
    fence: Fence | UnsetType = UNSET
    comment: str | UnsetType = UNSET
    status: Literal["done", "review", "dropped"] = "done"


class ReleaseTask(Struct, kw_only=True, forbid_unknown_fields=True):
    ref: Ref
    fence: Fence | UnsetType = UNSET
    comment: str | UnsetType = UNSET


_OBJECT: Final[JsonObject] = {"type": "object"}


@task_tool(
    title="Claim the next task",
    description=(
        "Use to take work: claims the best ready task, or ref, for you alone, and returns what you need to "
        "begin, with a fence to name in later calls. wait (10m) holds the call until a task is ready"
    ),
    arguments=NextTask,
    output={
        "type": "object",
        "properties": {
            "task": {"type": ["object", "null"]},
            "fence": {"type": "integer"},
            "until": {"type": "string"},
            "parent": _OBJECT,
            "done_before": array_schema(_OBJECT),
            "links": array_schema({"type": "string"}),
            "more": {"type": "string"},
            "note": {"type": "string"},
        },
        "required": ["task"],
    },
    effect=ADDS,
)
async def task_next(call: ToolCall, arguments: NextTask) -> ToolResult:
    wait = 0 if arguments.wait is UNSET else _seconds("wait", arguments.wait, 0, MAX_WAIT)
    request = ClaimRequest(
        labels=_labels(arguments),
        lease_seconds=_seconds("lease", arguments.lease or f"{DEFAULT_LEASE}s", MIN_LEASE, MAX_LEASE),
        connection=call.ctx.session.connection,
    )
    claimed: ClaimedTask | None
    if arguments.ref is not UNSET:
        task = await find_task(call, arguments.ref)
        claimed = await call.workspace.task_waiting.claim(call.caller, task.id, request)
    else:
        request = replace(request, project=await _project(call, arguments))
        if request.project is None and call.caller.project == NEW_PROJECT:
            return json_result({"task": None, "note": "This folder has no project and no tasks yet"})
        claimed = await _claim(call, request, wait)
    if claimed is None:
        waited = f" within {arguments.wait}" if wait else ""
        return json_result({"task": None, "note": f"No task became ready{waited}; {_ADVICE}"})
    call.scope.claims.add(request.connection, claimed.claim)
    return json_result(_claimed(claimed))


_ADVICE: Final = "all are done, claimed, assigned to others or wait for others. task_list shows them"


async def _claim(call: ToolCall, request: ClaimRequest, wait: int) -> ClaimedTask | None:
    waiting, ctx = call.workspace.task_waiting, call.ctx
    # The first attempt comes after the client's earlier writes and before its later requests.
    claimed = await waiting.claim_next(call.caller, request)
    if claimed is not None or not wait:
        return claimed
    ctx.start_waiting()
    return await waiting.claim_next(
        replace(call.caller, when_queued=None),
        request,
        wait,
        lambda passed: ctx.progress(passed, wait, "Waiting for a ready task"),
    )


def _labels(arguments: NextTask) -> tuple[str, ...]:
    labels = () if arguments.labels is UNSET else tuple(dict.fromkeys(arguments.labels))
    if len(labels) > MAX_LABELS or any(len(label) > LABEL_LENGTH for label in labels):
        problem = f"labels must be at most {MAX_LABELS}, each with at most {LABEL_LENGTH} characters"
        raise Invalid([Problem("labels", problem)])
    return labels


def _seconds(field: str, text: str, low: int, high: int) -> int:
    seconds = parse_duration(text) if text else 0
    if seconds is None or not low <= seconds <= high:
        bounds = f"between {low}s and {high // 3600}h" if low else f"at most {high // 3600}h"
        problem = f"{field} '{clip(text, 30)}' must be a duration such as 90s, 15m or 2h, {bounds}"
        raise Invalid([Problem(field, problem)])
    return seconds


async def queue_project(workspace: Workspace, caller: Caller) -> str | None:
    """Return the project whose tasks a connection works on; `None` for all, if it has the default project.

    Users who cannot change the project of the connection work on their own tasks and on other projects.
    """
    principal = caller.principal
    if caller.project == NEW_PROJECT or (principal is not None and not principal.changes_project):
        return None
    selected = await workspace.projects.of_caller(caller)
    return None if selected.name == DEFAULT_PROJECT else selected.name


async def _project(call: ToolCall, arguments: NextTask) -> str | None:
    if arguments.project is UNSET or not arguments.project:
        return await queue_project(call.workspace, call.caller)
    await require_projects(call, [arguments.project])
    return arguments.project


def _claimed(claimed: ClaimedTask) -> JsonObject:
    """Return a claimed task with what is needed to begin, as far as it fits."""
    task = claimed.task
    shown: JsonObject = {"ref": f"task:{task.id}", "title": task.title, **task_fields(task)}
    result: JsonObject = {"task": shown, "fence": claimed.claim.fence, "until": iso(claimed.claim.until)}
    if claimed.parent is not None:
        result["parent"] = brief(claimed.parent) | _notes(claimed.parent, _ROOM // 12)
    shown |= _notes(task, _ROOM // 4)
    if task.labels:
        shown["labels"] = list(task.labels)
    if comments := _last(comment_rows(task.comments), _ROOM // 6):
        shown["comments"] = comments
    if before := _last([_outcome(item) for item in claimed.done_before], _ROOM // 4):
        result["done_before"] = before
    if links := take_fitting(task.links, _ROOM // 8):
        result["links"] = links
    is_whole = (
        shown.get("notes", "") == (task.notes or "")
        and len(comments) == len(task.comments)
        and len(before) == len(claimed.done_before)
        and len(links) == len(task.links)
    )
    return result if is_whole else result | {"more": f"read task:{task.id} gives the rest"}


def _notes(task: Task, room: int) -> JsonObject:
    return {"notes": text_piece(task.notes, 0, room)} if task.notes else {}


def _outcome(task: Task) -> JsonObject:
    """Return a task that was done before, with its last comments."""
    comments = [_clipped(item) for item in task.comments[-_LAST_COMMENTS:]]
    return brief(task) | ({"comments": comment_rows(comments)} if comments else {})


def _clipped(comment: Comment) -> Comment:
    return replace(comment, text=clip(comment.text, 500))


def _last(items: list[Any], room: int) -> list[Any]:
    """Return the last items that fit."""
    return take_fitting(items[::-1], room)[::-1]


@task_tool(
    title="Finish a task",
    description="Use when work on a task ends; comment says what came out",
    arguments=FinishTask,
    output=ROW,
    effect=REPLACES,
)
async def task_done(call: ToolCall, arguments: FinishTask) -> ToolResult:
    task = await find_task(call, arguments.ref)
    finished = await call.workspace.task_queue.finish(
        call.caller, task.id, **_fence_and_comment(arguments), status=arguments.status
    )
    call.scope.claims.remove(call.ctx.session.connection, task.id)
    return json_result(task_row(finished))


@task_tool(
    title="Release a task",
    description="Use to give a claimed task back; comment tells the next one how far you came",
    arguments=ReleaseTask,
    output=ROW,
    effect=REPLACES,
)
async def task_release(call: ToolCall, arguments: ReleaseTask) -> ToolResult:
    task = await find_task(call, arguments.ref)
    released = await call.workspace.task_queue.release(call.caller, task.id, **_fence_and_comment(arguments))
    call.scope.claims.remove(call.ctx.session.connection, task.id)
    return json_result(task_row(released))


def _fence_and_comment(arguments: FinishTask | ReleaseTask) -> dict[str, Any]:
    return {
        "fence": None if arguments.fence is UNSET else arguments.fence,
        "comment": None if arguments.comment is UNSET else arguments.comment,
    }
