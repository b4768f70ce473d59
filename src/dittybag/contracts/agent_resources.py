"""The tool `save_resource`: create or update a resource in one call."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from dittybag.contracts.error_formats import bounded_json_error
from dittybag.contracts.references import ref_of
from dittybag.contracts.saved_versions import SAVED, IfVersion, require_if_version, retry_if_changed
from dittybag.contracts.tool_specs import REPLACES, ToolCall, json_result, tool
from dittybag.domain import resources
from dittybag.domain.errors import Invalid, NameTaken, Problem, ResourceNotFound, clip
from dittybag.domain.mime_types import guess_mime_type
from dittybag.domain.names import NAME_LENGTH, numbered_names
from dittybag.domain.resources import DEFAULT_MIME_TYPE, Resource, decode_base64, is_text
from dittybag.protocol.types import ToolResult
from dittybag.services.entity_writes import given_fields
from dittybag.services.resource_service import ResourceChange

_INVALID_IN_NAMES: Final = r"(?:%[0-9A-Fa-f]{2}|[^A-Za-z0-9._-])+"
#: Names that are tried for a resource without one.
_MAX_NAMES: Final = 50


class SaveResource(Struct, kw_only=True, forbid_unknown_fields=True):
    uri: Annotated[str, Meta(description="e.g. file:///notes.md")]
    content: str | UnsetType = UNSET
    base64: Annotated[str, Meta(description="or binary content")] | UnsetType = UNSET
    name: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    if_version: IfVersion | UnsetType = UNSET


def _save_problems(**given: object) -> list[Problem]:
    checked = {
        name: given[name] for name in ("uri", "name", "mime_type", "title", "description") if name in given
    }
    return resources.problems(**checked)


@tool(
    title="Save resource",
    description=(
        "Use when the user wants to keep a document, note or file: creates it, or updates the resource of "
        "this URI (omitted fields stay). if_version: as in save_prompt"
    ),
    arguments=SaveResource,
    toolset="resources",
    error_format=bounded_json_error,
    output=SAVED,
    check=_save_problems,
    effect=REPLACES,
)
async def save_resource(call: ToolCall, arguments: SaveResource) -> ToolResult:
    content = _content(arguments)
    return await retry_if_changed(partial(_save, call, arguments, content), arguments.if_version)


def _content(arguments: SaveResource) -> bytes | None:
    """Return the content to store; `None` if the stored content stays."""
    if arguments.content is not UNSET and arguments.base64 is not UNSET:
        raise Invalid([Problem("content", "Give either content or base64, not both")])
    if arguments.content is not UNSET:
        return arguments.content.encode()
    if arguments.base64 is UNSET:
        return None
    try:
        return decode_base64(arguments.base64)
    except ValueError:
        raise Invalid([Problem("base64", "base64 must be valid base64; use content for text")]) from None


async def _save(
    call: ToolCall, arguments: SaveResource, content: bytes | None, *, is_last: bool = False
) -> ToolResult:
    try:
        before = await call.workspace.resources.get(call.caller, arguments.uri)
    except ResourceNotFound:
        before = None
    require_if_version("resource", arguments.uri, before, arguments.if_version)
    fields = given_fields(arguments, "content", "base64", "if_version")
    if before is None:
        saved = await _create(call, arguments, fields, content)
    else:
        change = ResourceChange(**fields, content=UNSET if content is None else content)
        saved, _ = await call.workspace.resources.update(
            call.caller, before.name, change, version=None if is_last else before.version
        )
    return json_result({"ref": ref_of(saved), "created": before is None, "version": saved.version})


async def _create(
    call: ToolCall, arguments: SaveResource, fields: dict[str, str], content: bytes | None
) -> Resource:
    if content is None:
        raise Invalid([Problem("content", "content or base64 is required for a new resource")])
    last = arguments.uri.rstrip("/").rpartition("/")[2].rpartition(":")[2]
    fields.setdefault("mime_type", _likely_type(arguments, last, content))
    wanted = re.sub(_INVALID_IN_NAMES, "-", last).strip("-") or "resource"
    names = iter([fields.pop("name")] if "name" in fields else numbered_names(wanted, "-{}", NAME_LENGTH))
    for _ in range(_MAX_NAMES):
        name = next(names)
        try:
            saved, _ = await call.workspace.resources.create(
                call.caller, name=name, content=content, **fields
            )
        except NameTaken:
            if arguments.name is not UNSET:
                raise
        else:
            return saved
    raise Invalid([Problem("name", f"name is required: '{clip(wanted)}' is taken")])


def _likely_type(arguments: SaveResource, file: str, content: bytes) -> str:
    """Return the most likely type of a content, which is a text type if the content was given as text."""
    guessed = guess_mime_type(file, content)
    return guessed if arguments.content is UNSET or is_text(guessed) else DEFAULT_MIME_TYPE
