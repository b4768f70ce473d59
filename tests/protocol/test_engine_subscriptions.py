"""Notifications about changed lists and resources."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dittybag.protocol.eras.versions import HANDSHAKE_VERSIONS, V2025_11_25, V2026_07_28
from dittybag.protocol.features import PromptDefinition, ResourceDefinition, ToolDefinition
from dittybag.protocol.server import Server, ServerLimits
from dittybag.protocol.types import Capabilities, ListFeature
from tests.protocol.engine_servers import full_server
from tests.protocol.memory_client import MemoryClient

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def change_everything(server: Server) -> None:
    server.add(ToolDefinition(name="new", run=lambda arguments, ctx: "x"))
    server.add(PromptDefinition(name="new", run=lambda arguments, ctx: "x"))
    server.add(ResourceDefinition(uri="memo://new", name="new", read=lambda ctx: "x"))
    server.resource_updated("memo://one")


async def drain_inbox(client: MemoryClient) -> list[Any]:
    await client.request("tools/list")
    return [client.inbox.get_nowait() for _ in range(client.inbox.qsize())]


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
async def test_an_open_session_is_notified_of_changed_lists_and_subscribed_resources(version: str) -> None:
    server = full_server()
    async with MemoryClient(server, version) as client:
        change_everything(server)
        assert [message["method"] for message in await drain_inbox(client)] == [
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
        ]
        await client.request("resources/subscribe", {"uri": "memo://one"})
        server.resource_updated("memo://one")
        server.resource_updated("memo://bytes")
        (update,) = await drain_inbox(client)
        assert update["method"] == "notifications/resources/updated"
        assert update["params"] == {"uri": "memo://one"}
        await client.request("resources/unsubscribe", {"uri": "memo://one"})
        server.resource_updated("memo://one")
        assert await drain_inbox(client) == []
    server.tools_changed()
    assert client.inbox.empty()


async def test_changes_appear_in_the_lists_immediately() -> None:
    server = full_server()
    async with MemoryClient(server) as client:
        before = (await client.request("tools/list"))["tools"]
        server.add(ToolDefinition(name="new", run=lambda arguments, ctx: "x"))
        during = (await client.request("tools/list"))["tools"]
        server.remove_tool("new")
        after = (await client.request("tools/list"))["tools"]
        server.remove_prompt("greet")
        server.remove_resource("memo://one")
        server.remove_resource("memo://{year}/{name}")
        assert (await client.error("prompts/list"))["code"] == -32601
        assert [item["uri"] for item in (await client.request("resources/list"))["resources"]] == [
            "memo://bytes"
        ]
    assert [tool["name"] for tool in during] == [*(tool["name"] for tool in before), "new"]
    assert after == before


async def test_no_notifications_are_sent_before_the_handshake_is_finished() -> None:
    server = full_server()
    client = MemoryClient(server)
    change_everything(server)
    await client.request("initialize", {"protocolVersion": V2025_11_25})
    server.tools_changed()
    assert client.inbox.empty()
    client.notify("notifications/initialized")
    server.tools_changed()
    assert (await client.next())["method"] == "notifications/tools/list_changed"


async def test_a_server_without_the_capability_sends_no_notifications() -> None:
    server = Server("quiet", "1", capabilities=Capabilities(tools=ListFeature()))
    async with MemoryClient(server) as client:
        server.add(ToolDefinition(name="new", run=lambda arguments, ctx: "x"))
        assert await drain_inbox(client) == []


# The stateless revision


async def test_a_listen_stream_is_acknowledged_and_gets_only_what_it_requested() -> None:
    server = full_server()
    async with MemoryClient(server, V2026_07_28) as client:
        change_everything(server)
        assert await drain_inbox(client) == []
        wanted = {
            "promptsListChanged": True,
            "toolsListChanged": False,
            "resourceSubscriptions": ["memo://one"],
        }
        request_id, future = client.start(
            "subscriptions/listen", {"notifications": wanted}, request_id="listen"
        )
        assert await client.next() == {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {
                "_meta": {SUBSCRIPTION: "listen"},
                "notifications": {"promptsListChanged": True, "resourceSubscriptions": ["memo://one"]},
            },
        }
        server.remove_tool("new")
        server.remove_prompt("new")
        server.remove_resource("memo://new")
        server.resource_updated("memo://one")
        server.resource_updated("memo://bytes")
        prompts, updated = await drain_inbox(client)
        assert prompts["method"] == "notifications/prompts/list_changed"
        assert prompts["params"] == {"_meta": {SUBSCRIPTION: request_id}}
        assert updated["params"] == {"_meta": {SUBSCRIPTION: request_id}, "uri": "memo://one"}
        assert not future.done()


async def test_the_acknowledgement_omits_what_the_server_does_not_offer() -> None:
    server = Server("few", "1", capabilities=Capabilities(tools=ListFeature(list_changed=True)))
    async with MemoryClient(server, V2026_07_28) as client:
        client.start(
            "subscriptions/listen",
            {
                "notifications": {
                    "toolsListChanged": True,
                    "promptsListChanged": True,
                    "resourceSubscriptions": ["memo://one"],
                }
            },
        )
        assert (await client.next())["params"]["notifications"] == {"toolsListChanged": True}


async def test_several_listen_streams_have_separate_ids_and_ends() -> None:
    server = full_server()
    async with MemoryClient(server, V2026_07_28) as client:
        listening = [
            client.start("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            for _ in range(2)
        ]
        for _ in listening:
            await client.next()
        server.tools_changed()
        ids = [(await client.next())["params"]["_meta"][SUBSCRIPTION] for _ in listening]
        assert ids == [request_id for request_id, _ in listening]
        client.notify("notifications/cancelled", {"requestId": listening[0][0]})
        server.tools_changed()
        assert (await client.next())["params"]["_meta"][SUBSCRIPTION] == listening[1][0]
        assert await drain_inbox(client) == []
        assert client.dropped == 1
    assert not listening[0][1].done()
    closed = await asyncio.wait_for(listening[1][1], 5)
    assert closed["result"]["resultType"] == "complete"
    assert closed["result"]["_meta"][SUBSCRIPTION] == listening[1][0]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": []},
        {"notifications": {"toolsListChanged": 1}},
        {"notifications": {"resourceSubscriptions": "memo://one"}},
        {"notifications": {"resourceSubscriptions": [7]}},
    ],
)
async def test_a_malformed_filter_is_invalid_params(params: dict[str, Any]) -> None:
    async with MemoryClient(full_server(), V2026_07_28) as client:
        assert (await client.error("subscriptions/listen", params))["code"] == -32602


async def test_listen_streams_and_subscriptions_are_limited() -> None:
    server = full_server(limits=ServerLimits(listen_streams=1, subscribed_uris=1))
    listen = {"notifications": {"toolsListChanged": True}}
    many = {"notifications": {"resourceSubscriptions": ["a", "b"]}}
    async with MemoryClient(server, V2026_07_28) as client:
        assert (await client.error("subscriptions/listen", many))["code"] == -32600
        client.start("subscriptions/listen", listen)
        assert (await client.error("subscriptions/listen", listen))["code"] == -32600
    async with MemoryClient(server) as client:
        await client.request("resources/subscribe", {"uri": "a"})
        assert (await client.error("resources/subscribe", {"uri": "b"}))["code"] == -32600
