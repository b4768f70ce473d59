"""The prompt-store contract: tools for tagged, searchable prompts, with results in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Final, Protocol

from msgspec import UNSET, Meta, Struct, UnsetType

from dittybag.contracts.error_formats import json_error
from dittybag.contracts.tool_specs import (
    ADDS,
    REPLACES,
    array_schema,
    json_result,
    object_schema,
    query_problems,
    tool,
)
from dittybag.domain import prompts
from dittybag.domain.errors import Problem, require
from dittybag.domain.prompts import Prompt, PromptSummary
from dittybag.domain.queries import PromptQuery
from dittybag.domain.times import iso
from dittybag.protocol.argument_schemas import NoArguments
from dittybag.protocol.types import JsonObject, ToolResult
from dittybag.services.entity_writes import given_fields
from dittybag.services.prompt_service import PromptAddress, PromptChange, PromptPage
from dittybag.services.workspace import WorkspaceSession

Title = Annotated[str, Meta(min_length=1, max_length=200)]
Content = Annotated[str, Meta(min_length=1)]
Tag = Annotated[str, Meta(min_length=1, max_length=50, pattern="^[a-zA-Z0-9_-]+$")]
Limit = Annotated[int, Meta(ge=1, le=100)]
Offset = Annotated[int, Meta(ge=0)]

#: Databases do not accept larger offsets, and no store holds that many prompts.
_MAX_OFFSET: Final = 1 << 62


class _Paging(Protocol):
    """Arguments that select a page."""

    limit: int
    offset: int


class AddPrompt(Struct, kw_only=True):
    title: Annotated[Title, Meta(description="Unique title for the prompt")]
    content: Annotated[Content, Meta(description="Full prompt content")]
    tags: Annotated[list[Tag], Meta(description="Optional array of tag names")] = []


class ListPrompts(Struct, kw_only=True):
    limit: Annotated[Limit, Meta(description="Maximum number of prompts to return")] = 10
    offset: Annotated[Offset, Meta(description="Number of prompts to skip")] = 0


class GetPrompt(Struct, kw_only=True):
    id: Annotated[str, Meta(description="Prompt UUID")]


class UpdatePromptById(Struct, kw_only=True):
    id: Annotated[str, Meta(description="Prompt UUID to update")]
    title: Annotated[Title, Meta(description="New title for the prompt")]
    content: Annotated[Content, Meta(description="New prompt content")]
    tags: (
        Annotated[list[Tag], Meta(description="New array of tag names (replaces existing tags)")] | UnsetType
    ) = UNSET


class DeletePromptById(Struct, kw_only=True):
    id: Annotated[str, Meta(description="Prompt UUID to delete")]


class SearchPrompts(Struct, kw_only=True):
    query: Annotated[str, Meta(description="Search term (case-insensitive partial match)")]
    limit: Limit = 10
    offset: Offset = 0


class FilterByTags(Struct, kw_only=True):
    tags: Annotated[list[str], Meta(min_length=1, description="Array of tag names to filter by")]
    limit: Limit = 10
    offset: Offset = 0


_SUMMARY: Final = ("id", "title", "snippet", "tags", "created_at", "updated_at")
_PROMPT: Final = ("id", "title", "content", "tags", "created_at", "updated_at")
_CREATED: Final = ("id", "title", "created_at")
_UPDATED: Final = ("id", "title", "updated_at")


def _fields(prompt: Prompt | PromptSummary, names: Sequence[str]) -> JsonObject:
    """Return fields of a prompt for a result."""
    return {name: iso(value) if isinstance(value := getattr(prompt, name), int) else value for name in names}


def _schema(names: Sequence[str]) -> JsonObject:
    """Return the schema of these fields."""
    return object_schema(**{name: _STRINGS if name == "tags" else "string" for name in names})


async def _find(session: WorkspaceSession, paging: _Paging, text: str = "") -> PromptPage:
    offset = min(paging.offset, _MAX_OFFSET)
    query = PromptQuery(project=session.caller.project, text=text, limit=paging.limit, offset=offset)
    return await session.workspace.prompts.page(session.caller, query)


def _page(page: PromptPage, paging: _Paging, **between: Any) -> ToolResult:
    return json_result(
        {
            "prompts": [_fields(prompt, _SUMMARY) for prompt in page.prompts],
            "total": page.total,
            **between,
            "limit": paging.limit,
            "offset": paging.offset,
            "has_more": paging.offset + len(page.prompts) < page.total,
        }
    )


_STRINGS: Final = array_schema({"type": "string"})
_SUMMARIES: Final = array_schema(_schema(_SUMMARY))
_PAGED: Final[dict[str, str | JsonObject]] = {"limit": "integer", "offset": "integer", "has_more": "boolean"}

_tool: Final = partial(tool, toolset="prompts", error_format=json_error)


@_tool(
    title="Add prompt",
    description="Store a new AI prompt with optional tags",
    arguments=AddPrompt,
    output=_schema(_CREATED),
    check=prompts.problems,
    effect=ADDS,
)
async def add_prompt(session: WorkspaceSession, arguments: AddPrompt) -> ToolResult:
    prompt, _ = await session.workspace.prompts.create(session.caller, **given_fields(arguments))
    return json_result(_fields(prompt, _CREATED))


@_tool(
    title="List prompts",
    description="List stored prompts with pagination",
    arguments=ListPrompts,
    output=object_schema(prompts=_SUMMARIES, total="integer", **_PAGED),
)
async def list_prompts(session: WorkspaceSession, arguments: ListPrompts) -> ToolResult:
    return _page(await _find(session, arguments), arguments)


@_tool(
    title="Get prompt",
    description="Retrieve full prompt content by ID",
    arguments=GetPrompt,
    output=_schema(_PROMPT),
)
async def get_prompt(session: WorkspaceSession, arguments: GetPrompt) -> ToolResult:
    prompt = await session.workspace.prompts.get(session.caller, PromptAddress(id=arguments.id))
    return json_result(_fields(prompt, _PROMPT))


@_tool(
    title="Update prompt",
    description="Update an existing prompt's title, content, and tags",
    arguments=UpdatePromptById,
    output=_schema(_UPDATED),
    check=prompts.problems,
    effect=REPLACES,
)
async def update_prompt(session: WorkspaceSession, arguments: UpdatePromptById) -> ToolResult:
    change = PromptChange(**given_fields(arguments, "id"))
    prompt, _ = await session.workspace.prompts.update(session.caller, PromptAddress(id=arguments.id), change)
    return updated_prompt(prompt)


def updated_prompt(prompt: Prompt) -> ToolResult:
    return json_result(_fields(prompt, _UPDATED))


@_tool(
    title="Delete prompt",
    description="Permanently remove a prompt",
    arguments=DeletePromptById,
    output=object_schema(deleted="boolean", id="string"),
    effect=REPLACES,
)
async def delete_prompt(session: WorkspaceSession, arguments: DeletePromptById) -> ToolResult:
    prompt, _ = await session.workspace.prompts.delete(session.caller, PromptAddress(id=arguments.id))
    return json_result({"deleted": True, "id": prompt.id})


@_tool(
    title="Search prompts",
    description="Search prompts by keyword in title or content",
    arguments=SearchPrompts,
    output=object_schema(prompts=_SUMMARIES, total="integer", query="string", **_PAGED),
    check=query_problems,
)
async def search_prompts(session: WorkspaceSession, arguments: SearchPrompts) -> ToolResult:
    return _page(await _find(session, arguments, arguments.query), arguments, query=arguments.query)


def _filter_problems(tags: Sequence[str] = (), **others: Any) -> list[Problem]:
    return prompts.tag_count_problems(tags)


@_tool(
    title="Filter prompts by tags",
    description="Filter prompts by one or more tags (OR logic)",
    arguments=FilterByTags,
    output=object_schema(prompts=_SUMMARIES, total="integer", matched_tags=_STRINGS, **_PAGED),
    check=_filter_problems,
)
async def filter_by_tags(session: WorkspaceSession, arguments: FilterByTags) -> ToolResult:
    require(_filter_problems(arguments.tags))
    offset = min(arguments.offset, _MAX_OFFSET)
    page, matched = await session.workspace.prompts.by_tags(
        session.caller, arguments.tags, arguments.limit, offset
    )
    return _page(page, arguments, matched_tags=matched)


@_tool(
    title="List tags",
    description="List all available tags with prompt counts",
    arguments=NoArguments,
    output=object_schema(
        tags=array_schema(object_schema(name="string", prompt_count="integer")), total="integer"
    ),
)
async def list_tags(session: WorkspaceSession, arguments: NoArguments) -> ToolResult:
    tags = await session.workspace.prompts.tags(session.caller)
    listed = [{"name": tag.name, "prompt_count": tag.prompt_count} for tag in tags]
    return json_result({"tags": listed, "total": len(listed)})


TOOLS: Final = (
    add_prompt,
    list_prompts,
    get_prompt,
    update_prompt,
    delete_prompt,
    search_prompts,
    filter_by_tags,
    list_tags,
)
