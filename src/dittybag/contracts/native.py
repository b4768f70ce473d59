"""Dittybag's own tools: those of all contracts combined, plus search, change log and undo."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from dittybag.contracts import mcpkg, prompt_store, task_manager
from dittybag.contracts.agent_context import context
from dittybag.contracts.agent_prompts import use_prompt
from dittybag.contracts.agent_read import read
from dittybag.contracts.agent_search import search
from dittybag.contracts.agent_task_queue import task_done, task_next, task_release
from dittybag.contracts.agent_tasks import task_add
from dittybag.contracts.argument_items import ARGUMENT_SCHEMA
from dittybag.contracts.error_formats import ErrorFormat, json_error, problem_of, prose_error
from dittybag.contracts.prompt_store import Content, Limit, Tag, Title
from dittybag.contracts.tool_specs import (
    REPLACES,
    ToolCall,
    ToolSpec,
    array_schema,
    json_result,
    object_schema,
    tool,
)
from dittybag.domain import prompts
from dittybag.domain.changes import Change
from dittybag.domain.errors import Invalid, Problem
from dittybag.domain.prompts import Argument
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.tasks import NO_PROJECT
from dittybag.domain.times import iso
from dittybag.protocol.argument_schemas import find_violations
from dittybag.protocol.types import JsonObject, ToolResult
from dittybag.services.entity_writes import given_fields
from dittybag.services.history_service import UndoSelection
from dittybag.services.prompt_service import PromptAddress, PromptChange
from dittybag.services.workspace import WorkspaceSession

DeclaredArguments = Annotated[
    list[Any],
    Meta(
        description="Template arguments: {{ name }} in the content is replaced with the argument's value",
        extra_json_schema={"items": ARGUMENT_SCHEMA},
    ),
]

_TITLE: Final = Meta(description="Human-readable title (optional)")


class CreatePromptWithArguments(mcpkg.CreatePrompt, kw_only=True):
    arguments: DeclaredArguments | UnsetType = UNSET


class CreateResourceWithTitle(mcpkg.CreateResource, kw_only=True):
    title: Annotated[str, _TITLE] | UnsetType = UNSET


class UpdateResourceWithTitle(mcpkg.UpdateResource, kw_only=True):
    title: Annotated[str, _TITLE] | UnsetType = UNSET


class UpdatePromptByIdOrName(Struct, kw_only=True):
    id: Annotated[str, Meta(description="Prompt UUID; give either id or name")] | UnsetType = UNSET
    name: Annotated[str, Meta(description="Prompt name; give either id or name")] | UnsetType = UNSET
    title: Annotated[Title, Meta(description="New title")] | UnsetType = UNSET
    content: Annotated[Content, Meta(description="New content")] | UnsetType = UNSET
    description: Annotated[str, Meta(description="New description")] | UnsetType = UNSET
    tags: Annotated[list[Tag], Meta(description="New tags (replace existing tags)")] | UnsetType = UNSET
    arguments: DeclaredArguments | UnsetType = UNSET


class DeletePromptByIdOrName(Struct, kw_only=True):
    id: Annotated[str, Meta(description="Prompt UUID; give either id or name")] | UnsetType = UNSET
    name: Annotated[str, Meta(description="Prompt name; give either id or name")] | UnsetType = UNSET


class TaskListOfProject(task_manager.TaskList, kw_only=True):
    project: (
        Annotated[str, Meta(description=f"Filter by project; '{NO_PROJECT}' for tasks without one")]
        | UnsetType
    ) = UNSET


class ListChanges(Struct, kw_only=True):
    kind: Literal["project", "prompt", "resource", "task"] | UnsetType = UNSET
    id: Annotated[str, Meta(description="Only changes of the entity with this id")] | UnsetType = UNSET
    limit: Limit = 20
    before: Annotated[int, Meta(description="Only changes before this change number")] | UnsetType = UNSET


class UndoChange(Struct, kw_only=True):
    change: Annotated[int, Meta(description="Change number from list_changes")]


def error_format_by_address(arguments: Mapping[str, Any]) -> ErrorFormat:
    """Choose the format of errors in tools that accept an id or a name: JSON for an id, prose otherwise."""
    return json_error if "id" in arguments and "name" not in arguments else prose_error


def _address(arguments: UpdatePromptByIdOrName | DeletePromptByIdOrName) -> PromptAddress:
    if arguments.id is UNSET and arguments.name is UNSET:
        raise Invalid([Problem("", "Either id or name is required")])
    if arguments.id is not UNSET and arguments.name is not UNSET:
        raise Invalid([Problem("", "Give either id or name, not both")])
    return PromptAddress(**given_fields(arguments, *(set(arguments.__struct_fields__) - {"id", "name"})))


async def update_prompt(session: WorkspaceSession, arguments: UpdatePromptByIdOrName) -> ToolResult:
    address = _address(arguments)
    change = PromptChange(**_with_parsed_arguments(given_fields(arguments, "id", "name")))
    if change == PromptChange():
        raise Invalid([Problem("", "Nothing to update: give title, content, description, tags or arguments")])
    prompt, project = await session.workspace.prompts.update(session.caller, address, change)
    if address.id is None:
        return mcpkg.confirmation("Updated", prompt, project)
    return prompt_store.updated_prompt(prompt)


async def delete_prompt(session: ToolCall, arguments: DeletePromptByIdOrName) -> ToolResult:
    address = _address(arguments)
    if address.id is None:
        return await mcpkg.delete_prompt.run(session, mcpkg.DeletePromptByName(name=address.name or ""))
    return await prompt_store.delete_prompt.run(session, prompt_store.DeletePromptById(id=address.id))


async def create_prompt(session: WorkspaceSession, arguments: CreatePromptWithArguments) -> ToolResult:
    fields = _with_parsed_arguments(given_fields(arguments))
    prompt, project = await session.workspace.prompts.create(session.caller, **fields)
    return mcpkg.confirmation("Created", prompt, project)


def _with_parsed_arguments(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a prompt with its declared arguments parsed. Raises `Invalid`."""
    if "arguments" not in fields:
        return fields
    declared = fields["arguments"]
    found = find_violations({"arguments": declared}, _DECLARED_ARGUMENTS_SCHEMA)
    if found:
        others = {name: value for name, value in fields.items() if name != "arguments"}
        raise Invalid([*prompts.problems(**others), *map(problem_of, found)])
    return fields | {"arguments": msgspec.convert(declared, tuple[Argument, ...])}


_DECLARED_ARGUMENTS_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"arguments": {"type": "array", "items": ARGUMENT_SCHEMA}},
}


_CHANGES: Final = array_schema(
    object_schema(
        change="integer",
        at="string",
        actor="string",
        action="string",
        kind="string",
        id="string",
        title="string",
    )
)


@tool(
    title="List changes",
    description="List what was created, updated or deleted, by whom and when, newest first",
    arguments=ListChanges,
    toolset="history",
    error_format=json_error,
    output=object_schema(changes=_CHANGES),
)
async def list_changes(session: WorkspaceSession, arguments: ListChanges) -> ToolResult:
    query = ChangeQuery(
        project=session.caller.project,
        kind=None if arguments.kind is UNSET else arguments.kind,
        entity=None if arguments.id is UNSET else arguments.id,
        before=None if arguments.before is UNSET else arguments.before,
        limit=arguments.limit,
    )
    found = await session.workspace.history.page(session.caller, query)
    return json_result({"changes": [_change(change) for change in found]})


def _change(change: Change) -> JsonObject:
    return {
        "change": change.seq,
        "at": iso(change.at),
        "actor": change.actor,
        "action": change.action,
        "kind": change.kind,
        "id": change.entity,
        "title": change.label,
    }


@tool(
    title="Undo a change",
    description="Undo a change: restores deleted entities, reverts updated ones and deletes created ones",
    arguments=UndoChange,
    toolset="history",
    error_format=json_error,
    output=object_schema(undone=_CHANGES),
    effect=REPLACES,
)
async def undo_change(session: WorkspaceSession, arguments: UndoChange) -> ToolResult:
    selection = UndoSelection(seq=arguments.change, project=session.caller.project)
    result = await session.workspace.history.undo(session.caller, selection)
    return json_result({"undone": [_change(change) for change in result.changes]})


def _prompt_problems(arguments: Any = None, **parts: Any) -> Iterable[Problem]:
    if arguments is not None and not find_violations({"arguments": arguments}, _DECLARED_ARGUMENTS_SCHEMA):
        parts["arguments"] = msgspec.convert(arguments, tuple[Argument, ...])
    return prompts.problems(**parts)


def _extended(spec: ToolSpec[Any], **fields: Any) -> ToolSpec[Any]:
    return msgspec.structs.replace(spec, **fields)


TOOLS: Final[tuple[ToolSpec[Any], ...]] = (
    _extended(
        mcpkg.create_prompt, arguments=CreatePromptWithArguments, run=create_prompt, check=_prompt_problems
    ),
    prompt_store.add_prompt,
    prompt_store.list_prompts,
    prompt_store.get_prompt,
    _extended(
        mcpkg.update_prompt,
        description="Update a prompt by id or name; omitted fields stay unchanged",
        arguments=UpdatePromptByIdOrName,
        run=update_prompt,
        error_format_for=error_format_by_address,
        check=_prompt_problems,
        output={"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    ),
    _extended(
        mcpkg.delete_prompt,
        description="Delete a prompt by id or name",
        arguments=DeletePromptByIdOrName,
        run=delete_prompt,
        error_format_for=error_format_by_address,
        output={"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    ),
    prompt_store.search_prompts,
    prompt_store.filter_by_tags,
    prompt_store.list_tags,
    _extended(mcpkg.create_resource, arguments=CreateResourceWithTitle),
    _extended(mcpkg.update_resource, arguments=UpdateResourceWithTitle),
    mcpkg.delete_resource,
    *(
        _extended(tool, arguments=TaskListOfProject) if tool is task_manager.task_list else tool
        for tool in task_manager.TOOLS
    ),
    task_add,
    task_next,
    task_done,
    task_release,
    read,
    use_prompt,
    search,
    context,
    list_changes,
    undo_change,
)
