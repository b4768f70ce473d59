"""The tools `delete`, `history` and `undo`: nothing is lost, because every change is logged."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from dittybag.contracts.error_formats import bounded_json_error
from dittybag.contracts.references import (
    ChangeNumber,
    Ref,
    checked_ref,
    explicit_ref,
    find_item,
    find_logged_entity,
    kind_of_item,
    task_number,
)
from dittybag.contracts.result_size import list_result
from dittybag.contracts.tool_specs import REPLACES, ToolCall, array_schema, json_result, object_schema, tool
from dittybag.domain.changes import Change
from dittybag.domain.entities import label_of
from dittybag.domain.errors import (
    ChangeNotFound,
    ChangePurged,
    Conflict,
    Invalid,
    NotAllowed,
    Problem,
    ReferenceNotFound,
    TaskNotFound,
    clip,
)
from dittybag.domain.libraries import LibraryPrompt
from dittybag.domain.prompts import Prompt
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.tasks import Task
from dittybag.domain.times import iso
from dittybag.protocol.types import JsonObject, ToolResult
from dittybag.services.history_service import UndoPlan, UndoSelection
from dittybag.services.prompt_service import PromptAddress

#: Changes of a batch that are shown when an undo is refused or done.
_MAX_PLANNED: Final = 1000
_MAX_NAMED: Final = 5


class Delete(Struct, kw_only=True, forbid_unknown_fields=True):
    ref: Ref


@tool(
    title="Delete",
    description="Use to delete a prompt, resource or task; undo brings it back",
    arguments=Delete,
    toolset="prompts",
    more_toolsets=("resources", "tasks"),
    error_format=bounded_json_error,
    output=object_schema(deleted="string", kind="string", title="string"),
    effect=REPLACES,
)
async def delete(call: ToolCall, arguments: Delete) -> ToolResult:
    item = await find_item(call, arguments.ref)
    if isinstance(item, ChangeNumber):
        raise Invalid([Problem("ref", "ref is a change, which cannot be deleted; undo it instead")])
    if isinstance(item, LibraryPrompt):
        raise NotAllowed("Library prompts are files: Dittybag only reads them")
    workspace, caller = call.workspace, call.caller
    if isinstance(item, Task):
        await workspace.tasks.delete(caller, item.id)
    elif isinstance(item, Prompt):
        await workspace.prompts.delete(caller, PromptAddress(id=item.id))
    else:
        await workspace.resources.delete(caller, item.name)
    return json_result(
        {"deleted": explicit_ref(item), "kind": kind_of_item(item), "title": clip(label_of(item))}
    )


class History(Struct, kw_only=True, forbid_unknown_fields=True):
    ref: Ref | UnsetType = UNSET
    kind: Literal["prompt", "resource", "task"] | UnsetType = UNSET
    actor: str | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    before: Annotated[int, Meta(ge=1)] | UnsetType = UNSET


_CHANGE: Final = object_schema(
    ref="string", at="string", actor="string", action="string", kind="string", title="string"
)


def _row(change: Change) -> JsonObject:
    return {
        "ref": f"change:{change.seq}",
        "at": iso(change.at),
        "actor": change.actor,
        "action": change.verb,
        "kind": change.kind,
        "title": clip(change.label),
    }


@tool(
    title="History",
    description=(
        "Use to see who changed what and when, newest first, of one item (ref, also deleted) or of all; read "
        "change:15 shows the diff"
    ),
    arguments=History,
    toolset="history",
    error_format=bounded_json_error,
    output={
        "type": "object",
        "properties": {
            "changes": array_schema(_CHANGE),
            "more": {"type": "string"},
            "next_before": {"type": "integer"},
        },
        "required": ["changes"],
    },
)
async def history(call: ToolCall, arguments: History) -> ToolResult:
    call = await _in_project_of_task(call, arguments.ref)
    query = ChangeQuery(
        project=call.caller.project,
        kind=None if arguments.kind is UNSET else arguments.kind,
        actor=None if arguments.actor is UNSET else arguments.actor or None,
        before=None if arguments.before is UNSET else arguments.before,
        limit=arguments.limit,
    )
    if arguments.ref is not UNSET:
        query = await _of_entity(call, query, arguments.ref)
    page = await call.workspace.history.browse(call.caller, query)

    def rest(shown: int) -> JsonObject:
        older = page.changes[shown - 1].seq if shown < len(page.changes) else page.older
        return {} if older is None else {"more": f"older changes: before={older}", "next_before": older}

    return list_result("changes", [_row(change) for change in page.changes], rest)


async def _in_project_of_task(call: ToolCall, ref: str | UnsetType) -> ToolCall:
    """Return a call in the project of the task that a reference names, which need not be the connection's."""
    number = None if ref is UNSET else task_number(ref)
    if number is None:
        return call
    try:
        project = (await call.workspace.tasks.latest_change(call.caller, number)).project
    except (TaskNotFound, ChangePurged):
        return call
    if project in (None, call.caller.project):
        return call
    caller = replace(call.caller, project=project, folder=None)
    if caller.principal is not None:
        role = await call.workspace.accounts.role(caller.user, caller.project)
        caller = replace(caller, principal=replace(caller.principal, role=role))
    return replace(call, caller=caller)


async def _of_entity(call: ToolCall, query: ChangeQuery, ref: str) -> ChangeQuery:
    """Return a query for the changes of the entity that a reference names."""
    entity = await find_logged_entity(call, ref)
    if query.kind not in (None, entity.kind):
        raise Invalid([Problem("kind", f"kind must be {entity.kind} for this ref, or absent")])
    return replace(query, kind=entity.kind, entity=entity.id)


class Undo(Struct, kw_only=True, forbid_unknown_fields=True):
    ref: Annotated[Ref, Meta(description="change:15, or an item: its last change")]
    force: Annotated[bool, Meta(description="also overwrite later changes")] = False


@tool(
    title="Undo",
    description=(
        "Use to undo a change with its batch: reverts updates, restores deleted items, deletes created ones. "
        "An undo can be undone"
    ),
    arguments=Undo,
    toolset="history",
    error_format=bounded_json_error,
    output={
        "type": "object",
        "properties": {"undone": array_schema(_CHANGE), "by": {"type": "string"}, "more": {"type": "string"}},
        "required": ["undone"],
    },
    effect=REPLACES,
)
async def undo(call: ToolCall, arguments: Undo) -> ToolResult:
    call = await _in_project_of_task(call, arguments.ref)
    selection = UndoSelection(seq=await _change_to_undo(call, arguments.ref), project=call.caller.project)
    try:
        plan = await call.workspace.history.plan_undo(call.caller, selection, limit=_MAX_PLANNED)
    except ChangeNotFound:
        raise ReferenceNotFound(arguments.ref) from None
    if plan.later and not arguments.force:
        raise Conflict(_later_changes(plan))
    result = await call.workspace.history.undo(call.caller, selection, seen=plan.seen)
    count = len(result.changes)

    def rest(shown: int) -> JsonObject:
        by = {} if result.by is None else {"by": f"change:{result.by}"}
        return by | ({} if shown == count else {"more": f"{count - shown} more were undone"})

    return list_result("undone", [_row(change) for change in result.changes[:_MAX_PLANNED]], rest)


async def _change_to_undo(call: ToolCall, ref: str) -> int:
    """Return the number of a change, or of the last change of an item."""
    prefix, _, number = checked_ref(ref).partition(":")
    if prefix == "change" and number.isascii() and number.isdigit() and len(number) < _LONG_NUMBER:
        seq = int(number)
    else:
        query = await _of_entity(call, ChangeQuery(project=call.caller.project, limit=1), ref)
        changes = await call.workspace.history.page(call.caller, query)
        if not changes:
            raise ReferenceNotFound(ref)
        seq = changes[0].seq
    if seq == 1:
        raise NotAllowed("Change 1 created the workspace itself and cannot be undone")
    return seq


#: Databases do not accept larger numbers.
_LONG_NUMBER: Final = 19


def _later_changes(plan: UndoPlan) -> str:
    named = ", ".join(f"change:{change.seq}" for change in plan.later[:_MAX_NAMED])
    others = f" and {len(plan.later) - _MAX_NAMED} more" if len(plan.later) > _MAX_NAMED else ""
    return (
        f"The same items were changed later: {named}{others}. Undo these first, or use force: true to "
        "overwrite them; that can be undone, too"
    )
