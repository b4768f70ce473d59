"""The official Python SDK 1 as a client of Dittybag."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from interop_python_1 import connect
from mcp import ClientSession


async def main(plan: dict[str, Any]) -> list[Any]:
    async with connect(plan["server"]) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        # After this call, the SDK checks every structured result against the tool's output schema.
        await session.list_tools()
        seen, last = [], ""
        for tool, arguments in plan["calls"]:
            given = json.loads(json.dumps(arguments).replace("$ID", last))
            result = await session.call_tool(tool, given)
            seen.append([tool, result.isError, result.structuredContent])
            last = str((result.structuredContent or {}).get("id", last))
        prompt = await session.get_prompt("greet", {"who": "Ann"})
        return [*seen, prompt.messages[0].content.text]


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
