"""The tool `context`: a context pack for a task, a question or files, within a budget of tokens.

It also makes the resource template `dittybag://packs/task/{id}`.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from dittybag.contracts.error_formats import bounded_json_error
from dittybag.contracts.tool_specs import ServerScope, ToolCall, query_problems, tool
from dittybag.domain.errors import TaskNotFound
from dittybag.domain.queries import DEFAULT_BUDGET, MAX_BUDGET, MIN_BUDGET, PackRequest
from dittybag.protocol.request_context import Context
from dittybag.protocol.types import ResourceTemplateInfo, ToolResult

#: Databases do not accept larger numbers.
_MAX_DIGITS: Final = 18

TEMPLATE: Final = ResourceTemplateInfo(
    uri_template="dittybag://packs/task/{id}",
    name="context-of-task",
    title="Context of a task",
    description="The task, what it depended on, what matches it, pinned items and recent changes",
    mime_type="text/markdown",
)


class ContextPack(Struct, kw_only=True, forbid_unknown_fields=True):
    task: int | UnsetType = UNSET
    query: str | UnsetType = UNSET
    files: list[str] | UnsetType = UNSET
    budget: Annotated[int, Meta(ge=MIN_BUDGET, le=MAX_BUDGET)] = DEFAULT_BUDGET


@tool(
    title="Context pack",
    description="Use when you start on a task, question or files: what to know of it, pins, others' changes",
    arguments=ContextPack,
    toolset="search",
    error_format=bounded_json_error,
    check=query_problems,
)
async def context(call: ToolCall, arguments: ContextPack) -> ToolResult:
    request = PackRequest(
        task=None if arguments.task is UNSET else arguments.task,
        query="" if arguments.query is UNSET else arguments.query,
        files=() if arguments.files is UNSET else tuple(arguments.files),
        budget=arguments.budget,
    )
    return ToolResult.from_text((await call.workspace.packs.make(call.caller, request)).text)


async def task_pack(scope: ServerScope, number: str, ctx: Context) -> str | None:
    """Return the pack of a task as a resource, with all items for every reader; None if there is no task."""
    if not (number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS):
        return None
    try:
        return (await scope.workspace.packs.make(scope.caller(ctx), PackRequest(task=int(number)))).text
    except TaskNotFound:
        return None
