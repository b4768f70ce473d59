"""Load with aiohttp."""

from __future__ import annotations

import asyncio

import aiohttp
from http_plan import ACCEPT, BODIES, INITIALIZE, PLAN, VERSION, bodies, headers, run_load


async def main() -> None:
    connector = aiohttp.TCPConnector(limit=PLAN["connections"])
    async with aiohttp.ClientSession(connector=connector) as client:
        base = headers()
        if PLAN["session"]:
            base = {**ACCEPT, "MCP-Protocol-Version": VERSION}
            async with client.post(PLAN["url"], json=INITIALIZE, headers=base) as response:
                base["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"]
        all_headers = [{**base, "Authorization": f"Bearer {token}"} for token in PLAN["tokens"]] or [base]
        requests = bodies()

        async def call(number: int) -> None:
            sent = all_headers[number % len(all_headers)]
            async with client.post(PLAN["url"], data=requests[number % BODIES], headers=sent) as response:
                assert b'"structuredContent"' in await response.read(), response.status

        await run_load(call)


asyncio.run(main())
