"""Tools that change what the server offers, so that clients are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dittybag.protocol import (
    Context,
    NoArguments,
    PromptDefinition,
    ResourceDefinition,
    Server,
    ToolDefinition,
)

DYNAMIC_TOOL: Final = "test_dynamic_tool"
DYNAMIC_PROMPT: Final = "test_dynamic_prompt"
DYNAMIC_RESOURCE: Final = "test://dynamic-resource"


def offer(server: Server) -> None:
    tool: ToolDefinition[NoArguments] = ToolDefinition(
        name=DYNAMIC_TOOL, description="Comes and goes", run=lambda _arguments, _ctx: "dynamic"
    )
    prompt = PromptDefinition(
        name=DYNAMIC_PROMPT, description="Comes and goes", run=lambda _arguments, _ctx: "dynamic"
    )
    resource = ResourceDefinition(uri=DYNAMIC_RESOURCE, name="dynamic-resource", read=lambda _ctx: "dynamic")
    _offer_change(server, "tool", tool, lambda: server.remove_tool(DYNAMIC_TOOL))
    _offer_change(server, "prompt", prompt, lambda: server.remove_prompt(DYNAMIC_PROMPT))
    _offer_change(server, "resource", resource, lambda: server.remove_resource(DYNAMIC_RESOURCE))


def _offer_change(
    server: Server,
    noun: str,
    feature: ToolDefinition[Any] | PromptDefinition | ResourceDefinition,
    remove: Callable[[], None],
) -> None:
    is_there = False

    @server.tool(f"test_trigger_{noun}_change", description=f"Adds or takes away a {noun}")
    def trigger_change(arguments: NoArguments, ctx: Context) -> str:
        nonlocal is_there
        is_there = not is_there
        if is_there:
            server.add(feature)
            return f"Added a {noun}"
        remove()
        return f"Took away a {noun}"
