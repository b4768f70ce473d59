"""Tools that change what the server offers, so that clients are told."""

from __future__ import annotations

from typing import Final

from satchel.protocol import Context, NoArguments, Prompt, Resource, Server, Tool

DYNAMIC_TOOL: Final = "test_dynamic_tool"
DYNAMIC_PROMPT: Final = "test_dynamic_prompt"
DYNAMIC_RESOURCE: Final = "test://dynamic-resource"


def offer(server: Server) -> None:
    tool: Tool[NoArguments] = Tool(
        name=DYNAMIC_TOOL, description="Comes and goes", run=lambda _arguments, _ctx: "dynamic"
    )
    prompt = Prompt(name=DYNAMIC_PROMPT, description="Comes and goes", run=lambda _arguments, _ctx: "dynamic")
    resource = Resource(uri=DYNAMIC_RESOURCE, name="dynamic-resource", read=lambda _ctx: "dynamic")
    prompt_is_there = False
    resource_is_there = False

    @server.tool("test_trigger_tool_change", description="Adds or takes away a tool")
    def trigger_tool_change(arguments: NoArguments, ctx: Context) -> str:
        if DYNAMIC_TOOL in server.tools:
            server.remove_tool(DYNAMIC_TOOL)
            return f"Took away {DYNAMIC_TOOL}"
        server.add(tool)
        return f"Added {DYNAMIC_TOOL}"

    @server.tool("test_trigger_prompt_change", description="Adds or takes away a prompt")
    def trigger_prompt_change(arguments: NoArguments, ctx: Context) -> str:
        nonlocal prompt_is_there
        prompt_is_there = not prompt_is_there
        if prompt_is_there:
            server.add(prompt)
            return f"Added {DYNAMIC_PROMPT}"
        server.remove_prompt(DYNAMIC_PROMPT)
        return f"Took away {DYNAMIC_PROMPT}"

    @server.tool("test_trigger_resource_change", description="Adds or takes away a resource")
    def trigger_resource_change(arguments: NoArguments, ctx: Context) -> str:
        nonlocal resource_is_there
        resource_is_there = not resource_is_there
        if resource_is_there:
            server.add(resource)
            return f"Added {DYNAMIC_RESOURCE}"
        server.remove_resource(DYNAMIC_RESOURCE)
        return f"Took away {DYNAMIC_RESOURCE}"
