# mypy: ignore-errors
# The official SDKs are installed in their own environments.
"""The official Python SDK 1 as a client of a fleet."""

from __future__ import annotations

from typing import Any

from fleet_scenario import Json, UpdateListener, run, run_scenario
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from pydantic import AnyUrl


async def main(plan: Json) -> Json:
    listener = UpdateListener()

    async def handle_message(message: Any) -> None:
        notification = getattr(message, "root", None)
        await listener.add(
            getattr(notification, "method", ""), getattr(getattr(notification, "params", None), "uri", None)
        )

    async with (
        create_mcp_http_client(plan["headers"]) as http,
        streamable_http_client(plan["url"], http_client=http) as (from_server, to_server, _),
        ClientSession(from_server, to_server, message_handler=handle_message) as session,
    ):
        initialized = await session.initialize()
        results = await run_scenario(
            plan, session, lambda uri: session.subscribe_resource(AnyUrl(uri)), listener
        )
        return {"version": initialized.protocolVersion, **results}


run(main)
