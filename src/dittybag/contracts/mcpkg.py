"""The mcpkg contract: tools that create, update and delete prompts and resources, with results in prose."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from dittybag.contracts.error_formats import prose_error
from dittybag.contracts.tool_specs import ADDS, REPLACES, object_schema, tool
from dittybag.domain import prompts, resources
from dittybag.domain.entities import kind_of
from dittybag.domain.errors import Invalid, Problem
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.protocol.types import ToolResult
from dittybag.services.entity_writes import given_fields
from dittybag.services.prompt_service import PromptAddress, PromptChange
from dittybag.services.resource_service import ResourceChange
from dittybag.services.workspace import WorkspaceSession


class CreatePrompt(Struct, kw_only=True):
    name: Annotated[str, Meta(description="Prompt name (alphanumeric, hyphens, underscores, dots)")]
    content: Annotated[str, Meta(description="Prompt text content")]
    description: Annotated[str, Meta(description="Optional description")] | UnsetType = UNSET


class UpdatePromptByName(Struct, kw_only=True):
    name: Annotated[str, Meta(description="Prompt name")]
    content: Annotated[str, Meta(description="New prompt content (optional)")] | UnsetType = UNSET
    description: Annotated[str, Meta(description="New description (optional)")] | UnsetType = UNSET


class DeletePromptByName(Struct, kw_only=True):
    name: Annotated[str, Meta(description="Prompt name")]


class CreateResource(Struct, kw_only=True):
    name: Annotated[str, Meta(description="Resource name (alphanumeric, hyphens, underscores, dots)")]
    uri: Annotated[str, Meta(description="Resource URI")]
    content: Annotated[str, Meta(description="Resource content (text or base64 for binary)")]
    mime_type: (
        Annotated[str, Meta(description="MIME type (optional, defaults to text/plain)")] | UnsetType
    ) = UNSET
    description: Annotated[str, Meta(description="Optional description")] | UnsetType = UNSET


class UpdateResource(Struct, kw_only=True):
    name: Annotated[str, Meta(description="Resource name")]
    content: Annotated[str, Meta(description="New resource content (optional)")] | UnsetType = UNSET
    mime_type: Annotated[str, Meta(description="New MIME type (optional)")] | UnsetType = UNSET
    description: Annotated[str, Meta(description="New description (optional)")] | UnsetType = UNSET


class DeleteResource(Struct, kw_only=True):
    name: Annotated[str, Meta(description="Resource name")]


def confirmation(verb: str, item: Prompt | Resource, project: Project) -> ToolResult:
    """Confirm what was done to a prompt or resource, as in `Created`."""
    link = "from" if verb == "Deleted" else "in"
    return ToolResult.from_text(
        f"{verb} {kind_of(item)} '{item.name}' {link} project '{project.name}'",
        structured={"id": item.id, "name": item.name, "project": project.name},
    )


OUTPUT: Final = object_schema(id="string", name="string", project="string")

_tool: Final = partial(tool, error_format=prose_error, output=OUTPUT)


@_tool(
    title="Create prompt",
    description="Create a new prompt in the selected project",
    arguments=CreatePrompt,
    toolset="prompts",
    check=prompts.problems,
    effect=ADDS,
)
async def create_prompt(session: WorkspaceSession, arguments: CreatePrompt) -> ToolResult:
    prompt, project = await session.workspace.prompts.create(session.caller, **given_fields(arguments))
    return confirmation("Created", prompt, project)


@_tool(
    title="Update prompt",
    description="Update an existing prompt's content or description",
    arguments=UpdatePromptByName,
    toolset="prompts",
    check=prompts.problems,
    effect=REPLACES,
)
async def update_prompt(session: WorkspaceSession, arguments: UpdatePromptByName) -> ToolResult:
    change = PromptChange(**given_fields(arguments, "name"))
    if change == PromptChange():
        raise Invalid([Problem("", "Nothing to update: give content or description")])
    prompt, project = await session.workspace.prompts.update(
        session.caller, PromptAddress(name=arguments.name), change
    )
    return confirmation("Updated", prompt, project)


@_tool(
    title="Delete prompt",
    description="Delete a prompt from the selected project",
    arguments=DeletePromptByName,
    toolset="prompts",
    effect=REPLACES,
)
async def delete_prompt(session: WorkspaceSession, arguments: DeletePromptByName) -> ToolResult:
    prompt, project = await session.workspace.prompts.delete(
        session.caller, PromptAddress(name=arguments.name)
    )
    return confirmation("Deleted", prompt, project)


@_tool(
    title="Create resource",
    description="Create a new resource in the selected project",
    arguments=CreateResource,
    toolset="resources",
    check=resources.problems,
    effect=ADDS,
)
async def create_resource(session: WorkspaceSession, arguments: CreateResource) -> ToolResult:
    resource, project = await session.workspace.resources.create(session.caller, **given_fields(arguments))
    return confirmation("Created", resource, project)


@_tool(
    title="Update resource",
    description="Update an existing resource's content or metadata",
    arguments=UpdateResource,
    toolset="resources",
    check=resources.problems,
    effect=REPLACES,
)
async def update_resource(session: WorkspaceSession, arguments: UpdateResource) -> ToolResult:
    change = ResourceChange(**given_fields(arguments, "name"))
    if change == ResourceChange():
        raise Invalid([Problem("", "Nothing to update: give content, mime_type or description")])
    resource, project = await session.workspace.resources.update(session.caller, arguments.name, change)
    return confirmation("Updated", resource, project)


@_tool(
    title="Delete resource",
    description="Delete a resource from the selected project",
    arguments=DeleteResource,
    toolset="resources",
    effect=REPLACES,
)
async def delete_resource(session: WorkspaceSession, arguments: DeleteResource) -> ToolResult:
    resource, project = await session.workspace.resources.delete(session.caller, arguments.name)
    return confirmation("Deleted", resource, project)


TOOLS: Final = (
    create_prompt,
    update_prompt,
    delete_prompt,
    create_resource,
    update_resource,
    delete_resource,
)
