"""The official Python SDK 1 as a client of the profile `agent`."""

from __future__ import annotations

from agent_scenario import Roots, call_tools
from anyio import BrokenResourceError
from interop_python_1 import connect
from interop_scenario import Json, run, to_json
from mcp import ClientSession, types
from prompts_scenario import FormFiller


async def main(plan: Json) -> Json:
    user, seen = FormFiller(types), Json()
    callbacks = {"elicitation_callback": user.fill_in, **Roots(plan, types).as_keywords()}
    try:
        async with connect(plan["server"]) as streams, ClientSession(*streams[:2], **callbacks) as session:
            await session.initialize()

            async def call(tool: str, arguments: Json, answer: Json) -> Json:
                user.answer = answer
                return to_json(await session.call_tool(tool, arguments))

            tools = to_json(await session.list_tools())["tools"]
            seen = await call_tools(tools, call, plan)
    except* BrokenResourceError:
        # The SDK raises this error if a notification arrives while it disconnects.
        pass
    return {**seen, "forms": user.forms}


run(main)
