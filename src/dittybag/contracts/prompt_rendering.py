"""Prompts rendered for a client: the result of `prompts/get` and of tools that hand out a prompt.

Our own profiles hand out a prompt with roles as several messages, and ask the user for missing arguments if
the client can. The contracts have one message of the user, and an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dittybag.contracts.tool_specs import ServerScope
from dittybag.domain.errors import ArgumentMissing, clip
from dittybag.domain.prompts import Argument, Prompt, missing_arguments
from dittybag.domain.role_marks import Message
from dittybag.protocol.client_input import Elicit
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.request_context import Context
from dittybag.protocol.types import JsonObject, PromptMessage, PromptResult, Text
from dittybag.protocol.wire_errors import InputRejected

#: Identifies the form in the stateless revision.
_FORM_KEY: Final = "arguments"
#: Why arguments are missing after the user was asked for them, by the user's action.
_REFUSALS: Final = {
    "decline": "the user declined to enter the missing values",
    "cancel": "the user closed the form for the missing values",
}


async def render_stored_prompt(
    scope: ServerScope, prompt: Prompt, arguments: Mapping[str, Any], ctx: Context
) -> PromptResult:
    """Render a stored prompt for the client of a request."""
    values, client = values_as_text(arguments), scope.client_key(ctx)
    if not scope.has_chat_prompts:
        _require_for_contract(prompt.arguments, values)
        text = await scope.templates.render_prompt(prompt, values, client=client)
        return prompt_result(prompt.description, [Message("user", text)])
    values = await _ask_for_missing(scope, prompt.name, prompt.arguments, values, ctx)
    messages = await scope.templates.render_messages(prompt, values, client=client)
    return prompt_result(prompt.description, messages)


async def render_library_prompt(
    scope: ServerScope, name: str, arguments: Mapping[str, Any], ctx: Context
) -> PromptResult:
    """Render a library prompt for the client of a request."""
    values, client = values_as_text(arguments), scope.client_key(ctx)
    prompt = await scope.templates.find_library_prompt(name)
    if not scope.has_chat_prompts:
        _require_for_contract(prompt.arguments, values)
        text = await scope.templates.render_library_prompt(name, values, client=client)
        return prompt_result(prompt.description, [Message("user", text)])
    values = await _ask_for_missing(scope, name, prompt.arguments, values, ctx)
    messages = await scope.templates.render_library_messages(name, values, client=client)
    return prompt_result(prompt.description, messages)


def _require_for_contract(arguments: Iterable[Argument], values: Mapping[str, str]) -> None:
    """Raise the error of the contracts for a missing argument, which has only the name of the first one."""
    if missing := missing_arguments(arguments, values):
        raise ArgumentMissing(missing[0].name)


async def _ask_for_missing(
    scope: ServerScope, name: str, arguments: Iterable[Argument], values: dict[str, str], ctx: Context
) -> dict[str, str]:
    """Return the values, with those for which the user was asked. Raises `ArgumentMissing`."""
    missing = missing_arguments(arguments, values)
    if not missing:
        return values
    if not _can_ask(scope, ctx):
        raise ArgumentMissing.of(missing)
    message = f"The prompt '{clip(name)}' needs {'a value' if len(missing) == 1 else 'some values'}."
    try:
        answer = await ctx.elicit(message, _form(missing), key=_FORM_KEY)
    except InputRejected as rejected:
        reason = f"the client could not ask for the values: {clip(rejected.message)}"
        raise ArgumentMissing.of(missing, reason) from rejected
    if answer.action != "accept":
        raise ArgumentMissing.of(missing, _REFUSALS[answer.action])
    entered = values_as_text(answer.content or {})
    return {**values, **{argument.name: entered[argument.name] for argument in missing}}


def _can_ask(scope: ServerScope, ctx: Context) -> bool:
    """Whether the client has forms, and its answer reaches this server.

    In the handshake revisions, the answer is a message of its own, which another server may receive.
    """
    return ctx.can_ask(Elicit) and (ctx.revision.stateless or not scope.is_one_of_many)


def _form(arguments: Iterable[Argument]) -> JsonObject:
    """Return the schema of a form with a field for each argument."""
    fields = {argument.name: _field(argument) for argument in arguments}
    return {"type": "object", "properties": fields, "required": list(fields)}


def _field(argument: Argument) -> JsonObject:
    field: JsonObject = {"type": "string"}
    if argument.description:
        field["description"] = argument.description
    if argument.choices:
        field["enum"] = list(argument.choices)
    else:
        field["minLength"] = 1
    return field


def prompt_result(description: str | None, messages: Sequence[Message]) -> PromptResult:
    """Return a rendered prompt as the result of `prompts/get`.

    MCP has no role for system messages: they become messages of the user, in their places.
    """
    return PromptResult(
        description=description,
        messages=tuple(
            PromptMessage(
                role="assistant" if message.role == "assistant" else "user", content=Text(text=message.text)
            )
            for message in messages
        ),
    )


def values_as_text(values: Mapping[str, Any]) -> dict[str, str]:
    """Return argument values as text. Other values are encoded as JSON; `null` counts as absent."""
    return {
        name: value if isinstance(value, str) else encode(value).decode()
        for name, value in values.items()
        if value is not None
    }
