"""The official Python SDK 2 as a client, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

from client_plan import Calls, reply, requests
from mcp import StdioServerParameters
from mcp.client import Client


async def serve(plan: dict[str, Any], rest: Iterator[dict[str, Any]]) -> None:
    """Connect to a server, and run loads until the benchmark says `close`."""
    calls, tool = Calls(plan), plan["tool"]
    server = plan.get("url") or StdioServerParameters(
        command=plan["command"][0], args=plan["command"][1:], env=plan["env"]
    )

    started = time.perf_counter()
    async with Client(server, mode="auto" if "url" in plan else "legacy") as client:
        connected = time.perf_counter()
        await client.list_tools()
        reply({"initialize": connected - started, "tools": time.perf_counter() - started})

        async def call(planned: list[Any]) -> str:
            arguments, _, note = planned
            result = await client.call_tool(tool, arguments, meta={"note": note} if note else None)
            return str(result.content[0].text)

        for request in rest:
            if request["do"] == "close":
                break
            reply(await calls.run(request, call))
    reply({})


if __name__ == "__main__":
    everything = requests()
    for opened in everything:
        asyncio.run(serve(opened, everything))
