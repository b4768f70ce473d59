"""Load with httpx."""

from __future__ import annotations

import asyncio

import httpx
from http_plan import BODIES, PLAN, bodies, headers, run_load


async def main() -> None:
    limits = httpx.Limits(max_connections=PLAN["connections"])
    async with httpx.AsyncClient(limits=limits, timeout=60, trust_env=False) as client:
        requests, sent = bodies(), headers()

        async def call(number: int) -> None:
            response = await client.post(PLAN["url"], content=requests[number % BODIES], headers=sent)
            assert b'"structuredContent"' in response.content, response.status_code

        await run_load(call)


asyncio.run(main())
