"""The official Python SDK 2 as a client that requests prompts from Dittybag."""

from __future__ import annotations

import mcp_types as types
from interop_python_2 import target
from interop_scenario import Json, run
from mcp import MCPError
from mcp.client import Client
from prompts_scenario import FormFiller, request_prompts


async def main(plan: Json) -> Json:
    seen = {}
    for key in ("asked", "unasked"):
        user = FormFiller(types)
        form = {"elicitation_callback": user.fill_in} if key == "asked" else {}
        async with Client(target(plan["server"]), mode=plan["mode"], **form) as client:
            seen[key] = await request_prompts(client, plan[key], MCPError, user)
    return seen


run(main)
