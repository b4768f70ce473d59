"""The official Python SDK 2 as a client of the profile `agent`."""

from __future__ import annotations

import mcp_types as types
from agent_scenario import Roots, call_tools
from interop_python_2 import target
from interop_scenario import Json, run, to_json
from mcp.client import Client
from prompts_scenario import FormFiller


async def main(plan: Json) -> Json:
    user = FormFiller(types)
    callbacks = {"elicitation_callback": user.fill_in, **Roots(plan, types).as_keywords()}
    async with Client(target(plan["server"]), mode=plan["mode"], **callbacks) as client:

        async def call(tool: str, arguments: Json, answer: Json) -> Json:
            user.answer = answer
            return to_json(await client.call_tool(tool, arguments))

        tools = to_json(await client.list_tools())["tools"]
        return {**await call_tools(tools, call, plan), "forms": user.forms}


run(main)
