"""The tool `search`: a ranked search of everything, in the profiles `agent` and `all`."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from dittybag.contracts.error_formats import bounded_json_error
from dittybag.contracts.result_size import list_result, rest_of
from dittybag.contracts.tool_specs import ToolCall, array_schema, query_problems, tool
from dittybag.domain.errors import Invalid, Problem, clip
from dittybag.domain.times import iso
from dittybag.protocol.types import JsonObject, ToolResult
from dittybag.services.search_service import RankedHit, RankedKind, RankedQuery

#: More results of a search are neither counted nor returned.
_MAX_OFFSET: Final = 1_000
#: A list up to an item reads all that come before it.
_MAX_LIST_OFFSET: Final = 20_000


class Search(Struct, kw_only=True, forbid_unknown_fields=True):
    query: str | UnsetType = UNSET
    kinds: Annotated[list[RankedKind], Meta(min_length=1)] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    offset: Annotated[int, Meta(ge=0)] = 0


_HIT: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "kind": {"type": "string"},
        "ref": {"type": "string"},
        "title": {"type": "string"},
        "at": {"type": "string"},
        "actor": {"type": "string"},
        "passage": {"type": "string"},
    },
    "required": ["kind", "ref", "title", "passage"],
}


def _row(hit: RankedHit) -> JsonObject:
    row: JsonObject = {"kind": hit.kind, "ref": hit.ref, "title": clip(hit.title)}
    if hit.at is not None:
        row["at"] = iso(hit.at)
    if hit.actor is not None:
        row["actor"] = clip(hit.actor)
    return row | {"passage": hit.passage}


@tool(
    title="Search everything",
    description=(
        "Use before you create something or say that it does not exist: finds prompts, library prompts, "
        'resources and tasks by words in any order, best first; "quoted" text is exact. Without query: '
        "lists all, last changed first"
    ),
    arguments=Search,
    toolset="search",
    error_format=bounded_json_error,
    output={
        "type": "object",
        "properties": {
            "hits": array_schema(_HIT),
            "total": {"type": "integer"},
            "suggestion": {"type": "string"},
            "more": {"type": "string"},
            "next_offset": {"type": "integer"},
        },
        "required": ["hits", "total"],
    },
    check=query_problems,
    meta={"anthropic/alwaysLoad": True},
)
async def search(call: ToolCall, arguments: Search) -> ToolResult:
    kinds = () if arguments.kinds is UNSET else tuple(arguments.kinds)
    # Models write * for everything.
    text = "" if arguments.query is UNSET else arguments.query
    if text.strip() in ("", "*"):
        if arguments.offset > _MAX_LIST_OFFSET:
            problem = f"offset must be at most {_MAX_LIST_OFFSET} without a query; search for words instead"
            raise Invalid([Problem("offset", problem)])
        query = RankedQuery("", kinds, arguments.limit, arguments.offset)
        page = await call.workspace.search.newest(call.caller, query)
    else:
        offset = min(arguments.offset, _MAX_OFFSET)
        query = RankedQuery(text, kinds, arguments.limit, offset)
        page = await call.workspace.search.ranked(call.caller, query)
    suggestion = {} if page.suggestion is None else {"suggestion": page.suggestion}
    return list_result(
        "hits",
        [_row(hit) for hit in page.hits],
        lambda shown: {"total": page.total} | suggestion | rest_of(page.total, arguments.offset, shown),
    )
