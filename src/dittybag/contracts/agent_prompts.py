"""The tools `use_prompt` and `save_prompt`: prompts of the project and of libraries, by reference."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from dittybag.contracts.argument_items import ARGUMENT_SCHEMA, parse_items
from dittybag.contracts.error_formats import bounded_json_error
from dittybag.contracts.prompt_rendering import render_library_prompt, render_stored_prompt
from dittybag.contracts.references import Ref, find_item, ref_of
from dittybag.contracts.result_size import (
    LONGEST_RESULT,
    MAX_TOKENS,
    TokenLimit,
    json_tokens,
    piece_members,
    require_offset,
    text_piece,
)
from dittybag.contracts.saved_versions import SAVED, IfVersion, require_if_version, retry_if_changed
from dittybag.contracts.tool_specs import REPLACES, ToolCall, array_schema, json_result, object_schema, tool
from dittybag.domain import prompts
from dittybag.domain.errors import (
    Invalid,
    Problem,
    PromptNotFound,
    clip,
)
from dittybag.domain.libraries import LibraryPrompt
from dittybag.domain.prompts import Argument, Prompt, require_known
from dittybag.protocol.types import JsonObject, PromptResult, Text, ToolResult
from dittybag.services.entity_writes import given_fields
from dittybag.services.prompt_service import PromptAddress, PromptChange
from dittybag.services.template_arguments import describe_found

#: The tokens of a result around the messages, and around each of them.
_ROOM_AROUND_MESSAGES: Final = 150
_ROOM_AROUND_MESSAGE: Final = 20


class UsePrompt(Struct, kw_only=True, forbid_unknown_fields=True):
    ref: Ref
    arguments: dict[str, Any] | UnsetType = UNSET
    offset: Annotated[int, Meta(ge=0)] = 0
    max_tokens: TokenLimit = MAX_TOKENS


_MESSAGES: Final = array_schema(object_schema(role="string", text="string"))
_USED: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "ref": {"type": "string"},
        "description": {"type": "string"},
        "messages": _MESSAGES,
        "characters": {"type": "integer"},
        "offset": {"type": "integer"},
        "next_offset": {"type": "integer"},
        "more": {"type": "string"},
    },
    "required": ["ref", "messages", "characters"],
}


@tool(
    title="Use a prompt",
    description=(
        "Use when the user names a stored or library prompt to run: fills in its arguments and returns the "
        "text to follow"
    ),
    arguments=UsePrompt,
    toolset="prompts",
    error_format=bounded_json_error,
    output=_USED,
    meta={"anthropic/maxResultSizeChars": LONGEST_RESULT},
)
async def use_prompt(call: ToolCall, arguments: UsePrompt) -> ToolResult:
    prompt = await _find_prompt(call, arguments.ref)
    values = {} if arguments.arguments is UNSET else arguments.arguments
    require_known(prompt.name, prompt.arguments, values)
    if isinstance(prompt, Prompt):
        rendered = await render_stored_prompt(call.scope, prompt, values, call.ctx)
    else:
        rendered = await render_library_prompt(call.scope, prompt.name, values, call.ctx)
    return _rendered_piece(ref_of(prompt), rendered, arguments)


async def _find_prompt(call: ToolCall, ref: str) -> Prompt | LibraryPrompt:
    found = await find_item(call, ref, (Prompt, LibraryPrompt))
    if not isinstance(found, Prompt | LibraryPrompt):
        raise Invalid([Problem("ref", f"ref '{clip(ref)}' is not a prompt; use read to get it")])
    return found


def _rendered_piece(ref: str, rendered: PromptResult, arguments: UsePrompt) -> ToolResult:
    """Return the messages from `offset` on, of which the last may be cut."""
    parts = [(message.role, _text_of(message.content)) for message in rendered.messages]
    total = sum(len(text) for _, text in parts)
    require_offset(arguments.offset, total)
    described: JsonObject = {"ref": ref}
    if rendered.description is not None:
        described["description"] = clip(rendered.description)
    room = arguments.max_tokens - _ROOM_AROUND_MESSAGES - json_tokens(described)
    messages = _messages_from(parts, arguments.offset, room)
    end = arguments.offset + sum(len(message["text"]) for message in messages)
    return json_result(described | {"messages": messages} | piece_members(arguments.offset, end, total))


def _text_of(content: object) -> str:
    return content.text if isinstance(content, Text) else "(a content that is not text)"


def _messages_from(parts: Sequence[tuple[str, str]], offset: int, room: int) -> list[JsonObject]:
    """Return the messages from a character on that have at most `room` tokens, but at least one."""
    messages: list[JsonObject] = []
    for role, text in parts:
        start, offset = offset, max(offset - len(text), 0)
        if start >= len(text):
            continue
        if messages:
            room -= json_tokens(messages[-1]["text"])
        room -= _ROOM_AROUND_MESSAGE
        if messages and room <= 0:
            break
        piece = text_piece(text, start, room)
        messages.append({"role": role, "text": piece})
        if start + len(piece) < len(text):
            break
    return messages


# Saving

#: Unlike the tools of the contracts, our own refuse unknown members.
_ARGUMENT_SCHEMA: Final[JsonObject] = {**ARGUMENT_SCHEMA, "additionalProperties": False}


class SavePrompt(Struct, kw_only=True, forbid_unknown_fields=True):
    name: str
    content: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    arguments: (
        Annotated[
            list[Any],
            Meta(
                description="default: the {{ variables }}",
                extra_json_schema={"items": _ARGUMENT_SCHEMA},
            ),
        ]
        | UnsetType
    ) = UNSET
    verbatim: Annotated[bool, Meta(description="keep braces as text")] = False
    if_version: IfVersion | UnsetType = UNSET


def _save_problems(arguments: Any = None, **others: Any) -> list[Problem]:
    return prompts.problems(**{name: others[name] for name in _CHECKED_FIELDS if name in others})


_CHECKED_FIELDS: Final = ("name", "content", "title", "description", "tags")


@tool(
    title="Save prompt",
    description=(
        "Use when the user wants to keep a prompt or text for reuse: creates it, or updates the prompt of "
        "this name (omitted fields stay). {{ variables }} become arguments. if_version: save only if this is "
        "the current version, 0 if new"
    ),
    arguments=SavePrompt,
    toolset="prompts",
    error_format=bounded_json_error,
    output=SAVED,
    check=_save_problems,
    effect=REPLACES,
)
async def save_prompt(call: ToolCall, arguments: SavePrompt) -> ToolResult:
    return await retry_if_changed(partial(_save, call, arguments), arguments.if_version)


async def _save(call: ToolCall, arguments: SavePrompt, *, is_last: bool = False) -> ToolResult:
    try:
        before = await call.workspace.prompts.get(call.caller, PromptAddress(name=arguments.name))
    except PromptNotFound:
        before = None
    require_if_version("prompt", arguments.name, before, arguments.if_version)
    declared = await _arguments_of(call, before, arguments)
    fields = given_fields(arguments, "arguments", "verbatim", "if_version") | {"arguments": declared}
    if before is None:
        saved, _ = await call.workspace.prompts.create(call.caller, **fields)
    else:
        saved, _ = await call.workspace.prompts.update(
            call.caller,
            PromptAddress(id=before.id),
            PromptChange(**fields),
            version=None if is_last else before.version,
        )
    return json_result(_saved(saved, before, arguments))


async def _arguments_of(call: ToolCall, before: Prompt | None, arguments: SavePrompt) -> tuple[Argument, ...]:
    """Return the arguments to save: those given, and the variables of the content."""
    if arguments.arguments is not UNSET:
        given = tuple(parse_items("arguments", arguments.arguments, Argument, _ARGUMENT_SCHEMA))
        return await call.scope.templates.with_variables(arguments.content, given)
    if arguments.verbatim:
        return ()
    if before is None:
        return await call.scope.templates.find_arguments(arguments.content)
    return await call.scope.templates.updated_arguments(before, arguments.content)


def _saved(saved: Prompt, before: Prompt | None, arguments: SavePrompt) -> JsonObject:
    answer: JsonObject = {"ref": saved.name, "created": before is None, "version": saved.version}
    if not saved.arguments:
        return answer
    answer["arguments"] = [argument.name for argument in saved.arguments]
    known = {argument.name for argument in before.arguments} if before is not None else set()
    if arguments.arguments is not UNSET:
        known = {declared["name"] for declared in arguments.arguments}
    if found := [argument for argument in saved.arguments if argument.name not in known]:
        answer["note"] = f"{describe_found(found)}; verbatim: true keeps the braces as text"
    return answer
