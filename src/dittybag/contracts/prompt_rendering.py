"""Prompts rendered for a client: the result of `prompts/get` and of tools that hand out a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dittybag.contracts.tool_specs import ServerScope
from dittybag.domain.prompts import Prompt
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.request_context import Context
from dittybag.protocol.types import PromptMessage, PromptResult, Text


async def render_stored_prompt(
    scope: ServerScope, prompt: Prompt, arguments: Mapping[str, Any], ctx: Context
) -> PromptResult:
    """Render a stored prompt for the client of a request."""
    text = await scope.templates.render_prompt(
        prompt, values_as_text(arguments), client=scope.client_key(ctx)
    )
    return prompt_result(prompt.description, text)


async def render_library_prompt(
    scope: ServerScope, name: str, arguments: Mapping[str, Any], ctx: Context
) -> PromptResult:
    """Render a library prompt for the client of a request."""
    prompt, text = await scope.templates.render_library_prompt(
        name, values_as_text(arguments), client=scope.client_key(ctx)
    )
    return prompt_result(prompt.description, text)


def prompt_result(description: str | None, text: str) -> PromptResult:
    """Return a rendered prompt as the result of `prompts/get`."""
    content = PromptMessage(role="user", content=Text(text=text))
    return PromptResult(description=description, messages=(content,))


def values_as_text(values: Mapping[str, Any]) -> dict[str, str]:
    """Return argument values as text. Other values are encoded as JSON; `null` counts as absent."""
    return {
        name: value if isinstance(value, str) else encode(value).decode()
        for name, value in values.items()
        if value is not None
    }
