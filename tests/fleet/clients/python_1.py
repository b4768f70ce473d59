# mypy: ignore-errors
# The official SDKs are not in our own environment.
"""The official Python SDK 1 as a client of a fleet."""

from __future__ import annotations

from typing import Any

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from pydantic import AnyUrl
from visit import Ear, Json, run, visit


async def main(plan: Json) -> Json:
    ear = Ear()

    async def hear(message: Any) -> None:
        notification = getattr(message, "root", None)
        await ear.note(
            getattr(notification, "method", ""), getattr(getattr(notification, "params", None), "uri", None)
        )

    async with (
        create_mcp_http_client(plan["headers"]) as http,
        streamable_http_client(plan["url"], http_client=http) as (from_server, to_server, _),
        ClientSession(from_server, to_server, message_handler=hear) as session,
    ):
        hello = await session.initialize()
        seen = await visit(plan, session, lambda uri: session.subscribe_resource(AnyUrl(uri)), ear)
        return {"version": hello.protocolVersion, **seen}


run(main)
