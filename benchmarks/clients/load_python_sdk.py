"""Load with the official Python SDK 1."""

from __future__ import annotations

import asyncio

from http_plan import PLAN, note, run_load
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main() -> None:
    async with streamablehttp_client(PLAN["url"]) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        await session.list_tools()

        async def call(number: int) -> None:
            arguments = {"id": PLAN["ids"][number % len(PLAN["ids"])]}
            result = await session.call_tool("get_prompt", arguments, meta={"note": note(number)})
            assert not result.isError

        await run_load(call)


asyncio.run(main())
