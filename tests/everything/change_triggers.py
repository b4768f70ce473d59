"""Tools that add or remove a tool, prompt or resource, which notifies clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dittybag.protocol.argument_schemas import NoArguments
from dittybag.protocol.features import PromptDefinition, ResourceDefinition, ToolDefinition
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server

DYNAMIC_TOOL: Final = "test_dynamic_tool"
DYNAMIC_PROMPT: Final = "test_dynamic_prompt"
DYNAMIC_RESOURCE: Final = "test://dynamic-resource"


def register(server: Server) -> None:
    tool: ToolDefinition[NoArguments] = ToolDefinition(
        name=DYNAMIC_TOOL,
        description="Added and removed by a trigger tool",
        run=lambda _arguments, _ctx: "dynamic",
    )
    prompt = PromptDefinition(
        name=DYNAMIC_PROMPT,
        description="Added and removed by a trigger tool",
        run=lambda _arguments, _ctx: "dynamic",
    )
    resource = ResourceDefinition(uri=DYNAMIC_RESOURCE, name="dynamic-resource", read=lambda _ctx: "dynamic")
    _register_change(server, "tool", tool, lambda: server.remove_tool(DYNAMIC_TOOL))
    _register_change(server, "prompt", prompt, lambda: server.remove_prompt(DYNAMIC_PROMPT))
    _register_change(server, "resource", resource, lambda: server.remove_resource(DYNAMIC_RESOURCE))


def _register_change(
    server: Server,
    noun: str,
    feature: ToolDefinition[Any] | PromptDefinition | ResourceDefinition,
    remove: Callable[[], None],
) -> None:
    is_registered = False

    @server.tool(f"test_trigger_{noun}_change", description=f"Adds or removes a {noun}")
    def trigger_change(arguments: NoArguments, ctx: Context) -> str:
        nonlocal is_registered
        is_registered = not is_registered
        if is_registered:
            server.add(feature)
            return f"Added a {noun}"
        remove()
        return f"Removed a {noun}"
