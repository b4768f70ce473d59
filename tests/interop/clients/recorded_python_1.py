"""Validates the answers that a client without a programming interface received from the profile `agent`.

The plan has the answers, beside the tools and the calls.
"""

from __future__ import annotations

from agent_scenario import call_tools
from interop_scenario import Json, run


async def main(plan: Json) -> Json:
    results = iter(plan["results"])

    async def recorded(tool: str, arguments: Json, answer: Json) -> Json:
        result: Json = next(results)
        return result

    return await call_tools(plan["tools"], recorded, plan)


run(main)
