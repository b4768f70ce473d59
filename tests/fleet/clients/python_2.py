# mypy: ignore-errors
# The official SDKs are not in our own environment.
"""The official Python SDK 2 as a client of a fleet."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared._httpx_utils import create_mcp_http_client
from visit import UPDATED, Ear, Json, run, visit


async def main(plan: Json) -> Json:
    ear = Ear()

    async def listen(subscription: Any) -> None:
        async for event in subscription:
            if isinstance(event, ResourceUpdated):
                await ear.note(UPDATED, event.uri)

    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(create_mcp_http_client(plan["headers"]))
        transport = streamable_http_client(plan["url"], http_client=http)
        client = await stack.enter_async_context(Client(transport, mode=plan["mode"]))

        async def watch(uri: str) -> None:
            opened = await stack.enter_async_context(client.listen(resource_subscriptions=[uri]))
            listening = asyncio.ensure_future(listen(opened))
            stack.callback(listening.cancel)

        seen = await visit(plan, client, watch, ear)
        return {"version": client.protocol_version, **seen}


run(main)
