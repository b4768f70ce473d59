# mypy: ignore-errors
# The official SDKs are installed in their own environments.
"""The official Python SDK 2 as a client of a fleet."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from fleet_scenario import UPDATED, Json, UpdateListener, run, run_scenario
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared._httpx_utils import create_mcp_http_client


async def main(plan: Json) -> Json:
    listener = UpdateListener()

    async def listen(events: Any) -> None:
        async for event in events:
            if isinstance(event, ResourceUpdated):
                await listener.add(UPDATED, event.uri)

    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(create_mcp_http_client(plan["headers"]))
        transport = streamable_http_client(plan["url"], http_client=http)
        client = await stack.enter_async_context(Client(transport, mode=plan["mode"]))

        async def subscribe(uri: str) -> None:
            subscription = await stack.enter_async_context(client.listen(resource_subscriptions=[uri]))
            task = asyncio.ensure_future(listen(subscription))
            stack.callback(task.cancel)

        results = await run_scenario(plan, client, subscribe, listener)
        return {"version": client.protocol_version, **results}


run(main)
