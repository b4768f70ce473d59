"""Who is told that a list or a resource has changed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dittybag.protocol import PromptDefinition, ResourceDefinition, Server, ServerLimits, ToolDefinition
from dittybag.protocol.eras import HANDSHAKE_VERSIONS, V2025_11_25, V2026_07_28
from dittybag.protocol.transports.in_memory import MemoryClient
from dittybag.protocol.types import Capabilities, ListFeature
from tests.protocol.servers import full_server

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def change_everything(server: Server) -> None:
    server.add(ToolDefinition(name="new", run=lambda arguments, ctx: "x"))
    server.add(PromptDefinition(name="new", run=lambda arguments, ctx: "x"))
    server.add(ResourceDefinition(uri="memo://new", name="new", read=lambda ctx: "x"))
    server.resource_updated("memo://one")


async def said(client: MemoryClient) -> list[Any]:
    await client.request("tools/list")
    return [client.inbox.get_nowait() for _ in range(client.inbox.qsize())]


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
async def test_an_open_session_is_told_of_changed_lists_and_watched_resources(version: str) -> None:
    server = full_server()
    async with MemoryClient(server, version) as client:
        change_everything(server)
        assert [message["method"] for message in await said(client)] == [
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
        ]
        await client.request("resources/subscribe", {"uri": "memo://one"})
        server.resource_updated("memo://one")
        server.resource_updated("memo://bytes")
        (update,) = await said(client)
        assert update["method"] == "notifications/resources/updated"
        assert update["params"] == {"uri": "memo://one"}
        await client.request("resources/unsubscribe", {"uri": "memo://one"})
        server.resource_updated("memo://one")
        assert await said(client) == []
    server.tools_changed()
    assert client.inbox.empty()


async def test_changes_show_in_the_lists_at_once() -> None:
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


async def test_nothing_is_sent_before_the_handshake_is_done() -> None:
    server = full_server()
    client = MemoryClient(server)
    change_everything(server)
    await client.request("initialize", {"protocolVersion": V2025_11_25})
    server.tools_changed()
    assert client.inbox.empty()
    client.notify("notifications/initialized")
    server.tools_changed()
    assert (await client.next())["method"] == "notifications/tools/list_changed"


async def test_a_server_that_does_not_declare_it_does_not_send_it() -> None:
    server = Server("quiet", "1", capabilities=Capabilities(tools=ListFeature()))
    async with MemoryClient(server) as client:
        server.add(ToolDefinition(name="new", run=lambda arguments, ctx: "x"))
        assert await said(client) == []


# The stateless revision


async def test_a_listener_gets_just_what_it_asked_for_after_an_acknowledgement() -> None:
    server = full_server()
    async with MemoryClient(server, V2026_07_28) as client:
        change_everything(server)
        assert await said(client) == []
        wanted = {
            "promptsListChanged": True,
            "toolsListChanged": False,
            "resourceSubscriptions": ["memo://one"],
        }
        request_id, future = client.start("subscriptions/listen", {"notifications": wanted}, request_id="ear")
        assert await client.next() == {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {
                "_meta": {SUBSCRIPTION: "ear"},
                "notifications": {"promptsListChanged": True, "resourceSubscriptions": ["memo://one"]},
            },
        }
        server.remove_tool("new")
        server.remove_prompt("new")
        server.remove_resource("memo://new")
        server.resource_updated("memo://one")
        server.resource_updated("memo://bytes")
        prompts, updated = await said(client)
        assert prompts["method"] == "notifications/prompts/list_changed"
        assert prompts["params"] == {"_meta": {SUBSCRIPTION: request_id}}
        assert updated["params"] == {"_meta": {SUBSCRIPTION: request_id}, "uri": "memo://one"}
        assert not future.done()


async def test_a_listener_is_told_what_the_server_cannot_offer() -> None:
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


async def test_several_listeners_are_told_apart_and_end_one_by_one() -> None:
    server = full_server()
    async with MemoryClient(server, V2026_07_28) as client:
        listening = [
            client.start("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            for _ in range(2)
        ]
        for _ in listening:
            await client.next()
        server.tools_changed()
        heard = [(await client.next())["params"]["_meta"][SUBSCRIPTION] for _ in listening]
        assert heard == [request_id for request_id, _ in listening]
        client.notify("notifications/cancelled", {"requestId": listening[0][0]})
        server.tools_changed()
        assert (await client.next())["params"]["_meta"][SUBSCRIPTION] == listening[1][0]
        assert await said(client) == []
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


async def test_listeners_and_subscriptions_are_bounded() -> None:
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
