"""The tool `context`: a context pack for a task, a question or files, within a budget of tokens.

It also makes the resource template `dittybag://packs/task/{id}`. A connection gets an unchanged item once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final
from weakref import WeakKeyDictionary

from msgspec import UNSET, Meta, Struct, UnsetType

from dittybag.contracts.error_formats import bounded_json_error
from dittybag.contracts.tool_specs import ServerScope, ToolCall, query_problems, tool
from dittybag.domain.errors import TaskNotFound
from dittybag.domain.queries import DEFAULT_BUDGET, MAX_BUDGET, MIN_BUDGET, PackRequest
from dittybag.protocol.request_context import Context
from dittybag.protocol.types import ResourceTemplateInfo, ToolResult

if TYPE_CHECKING:
    from dittybag.protocol.dispatch import Session

#: At most this many items of a connection are remembered; the first ones are forgotten.
_MAX_KNOWN: Final = 5_000
#: Databases do not accept larger numbers.
_MAX_DIGITS: Final = 18

TEMPLATE: Final = ResourceTemplateInfo(
    uri_template="dittybag://packs/task/{id}",
    name="context-of-task",
    title="Context of a task",
    description="The task, what it depended on, what matches it, pinned items and recent changes",
    mime_type="text/markdown",
)

#: The versions of the items that each connection has had, by key.
_known: Final[WeakKeyDictionary[Session, dict[str, int]]] = WeakKeyDictionary()


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
    session = call.ctx.session
    known = {} if session.is_temporary else _known.setdefault(session, {})
    request = PackRequest(
        task=None if arguments.task is UNSET else arguments.task,
        query="" if arguments.query is UNSET else arguments.query,
        files=() if arguments.files is UNSET else tuple(arguments.files),
        budget=arguments.budget,
        known=known,
    )
    pack = await call.workspace.packs.make(call.caller, request)
    known |= pack.items
    for key in list(known)[: max(len(known) - _MAX_KNOWN, 0)]:
        del known[key]
    return ToolResult.from_text(pack.text)


async def task_pack(scope: ServerScope, number: str, ctx: Context) -> str | None:
    """Return the pack of a task as a resource, with all items for every reader; None if there is no task."""
    if not (number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS):
        return None
    try:
        return (await scope.workspace.packs.make(scope.caller(ctx), PackRequest(task=int(number)))).text
    except TaskNotFound:
        return None
