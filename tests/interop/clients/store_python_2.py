"""The official Python SDK 2 as a client of Dittybag."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from interop_python_2 import target
from mcp.client import Client


async def main(plan: dict[str, Any]) -> list[Any]:
    async with Client(target(plan["server"]), mode=plan["mode"]) as client:
        # After this call, the SDK checks every structured result against the tool's output schema.
        await client.list_tools()
        seen, last = [], ""
        for tool, arguments in plan["calls"]:
            given = json.loads(json.dumps(arguments).replace("$ID", last))
            result = await client.call_tool(tool, given)
            seen.append([tool, result.is_error, result.structured_content])
            last = str((result.structured_content or {}).get("id", last))
        prompt = await client.get_prompt("greet", {"who": "Ann"})
        return [*seen, prompt.messages[0].content.text]


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
