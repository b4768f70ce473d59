"""The official Python SDK 1 as a client that requests prompts from Dittybag."""

from __future__ import annotations

from interop_python_1 import connect
from interop_scenario import Json, run
from mcp import ClientSession, McpError, types
from prompts_scenario import FormFiller, request_prompts


async def main(plan: Json) -> Json:
    seen = {}
    for key in ("asked", "unasked"):
        user = FormFiller(types)
        form = {"elicitation_callback": user.fill_in} if key == "asked" else {}
        async with connect(plan["server"]) as streams, ClientSession(*streams[:2], **form) as session:
            await session.initialize()
            seen[key] = await request_prompts(session, plan[key], McpError, user)
    return seen


run(main)
