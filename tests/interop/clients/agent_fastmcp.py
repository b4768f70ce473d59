"""FastMCP's client as a client of the profile `agent`."""

from __future__ import annotations

from typing import Any

from agent_scenario import call_tools
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from interop_scenario import Json, run, to_json
from skills_fastmcp import target


async def main(plan: Json) -> Json:
    forms: list[Json] = []
    given: Json = {}

    async def fill_in(message: str, response_type: Any, params: Any, context: Any) -> ElicitResult[Any]:
        forms.append(to_json(params))
        return ElicitResult(**given)

    options = {"mode": plan["mode"], "roots": plan.get("roots"), "elicitation_handler": fill_in}
    async with Client(target(plan["server"]), **options) as client:

        async def call(tool: str, arguments: Json, answer: Json) -> Json:
            given.clear()
            given.update(answer)
            # FastMCP builds a type from the output schema, and an object of it from the structured content.
            result = await client.call_tool(tool, arguments, raise_on_error=False)
            structured = result.structured_content
            assert (result.data is None) is (structured is None), result
            content = [to_json(block) for block in result.content]
            found = {} if structured is None else {"structuredContent": structured}
            return {"content": content, "isError": result.is_error, **found}

        tools = [to_json(tool) for tool in await client.list_tools()]
        return {**await call_tools(tools, call, plan), "forms": forms}


run(main)
