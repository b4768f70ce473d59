"""The methods and fields of each protocol revision."""

from __future__ import annotations

from typing import Any

import pytest

from dittybag.protocol.eras.method_table import METHODS
from dittybag.protocol.eras.versions import (
    HANDSHAKE_VERSIONS,
    STATELESS_VERSIONS,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    VERSIONS,
)
from dittybag.protocol.method_handlers import HANDLERS
from tests.protocol.engine_servers import full_server
from tests.protocol.memory_client import MemoryClient

#: Valid parameters of each method, and the members that its result must have.
VALID_CALLS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "initialize": (
        {"protocolVersion": V2025_06_18, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
        {"protocolVersion", "capabilities", "serverInfo", "instructions"},
    ),
    "ping": ({}, set()),
    "server/discover": ({}, {"supportedVersions", "capabilities", "instructions"}),
    "tools/list": ({}, {"tools"}),
    "tools/call": ({"name": "echo", "arguments": {"text": "hi"}}, {"content", "isError"}),
    "prompts/list": ({}, {"prompts"}),
    "prompts/get": ({"name": "greet", "arguments": {"who": "Ada"}}, {"messages"}),
    "resources/list": ({}, {"resources"}),
    "resources/templates/list": ({}, {"resourceTemplates"}),
    "resources/read": ({"uri": "memo://one"}, {"contents"}),
    "resources/subscribe": ({"uri": "memo://one"}, set()),
    "resources/unsubscribe": ({"uri": "memo://one"}, set()),
    "completion/complete": (
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "language", "value": "e"}},
        {"completion"},
    ),
    "logging/setLevel": ({"level": "error"}, set()),
}

#: The method table from the schemas of the specification, independent of the engine's table.
_BOTH = {
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "completion/complete",
}
_HANDSHAKE_ONLY = {"initialize", "ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"}
_STATELESS_ONLY = {"server/discover", "subscriptions/listen"}
SPECIFIED = {(method, version) for version in HANDSHAKE_VERSIONS for method in _BOTH | _HANDSHAKE_ONLY} | {
    (method, V2026_07_28) for method in _BOTH | _STATELESS_ONLY
}

#: Methods of other revisions or extensions that the engine does not support.
UNSUPPORTED_METHODS = [
    "tasks/get",
    "tasks/list",
    "roots/list",
    "sampling/createMessage",
    "elicitation/create",
    "tools",
    "",
]


def test_the_method_table_matches_the_specification() -> None:
    assert set(METHODS) == SPECIFIED
    assert set(HANDLERS) == {method for method, _ in METHODS}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", sorted(set(HANDLERS) - {"subscriptions/listen"}))
async def test_a_method_works_only_in_the_revisions_that_have_it(method: str, version: str) -> None:
    params, members = VALID_CALLS[method]
    async with MemoryClient(full_server(), version) as client:
        response = await client.exchange(method, params)
    if (method, version) in SPECIFIED or (method == "initialize" and version in STATELESS_VERSIONS):
        # `initialize` always starts a handshake session, regardless of `_meta`.
        assert members <= response["result"].keys()
    else:
        assert response["error"]["code"] == -32601


@pytest.mark.parametrize("version", VERSIONS)
async def test_listen_streams_exist_only_in_the_stateless_revision(version: str) -> None:
    async with MemoryClient(full_server(), version) as client:
        _, future = client.start("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        if version in STATELESS_VERSIONS:
            assert (await client.next())["method"] == "notifications/subscriptions/acknowledged"
        else:
            assert (await future)["error"]["code"] == -32601


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", UNSUPPORTED_METHODS)
async def test_an_unsupported_method_is_not_found(method: str, version: str) -> None:
    async with MemoryClient(full_server(), version) as client:
        assert (await client.error(method))["code"] == -32601


@pytest.mark.parametrize("params", [{"protocolVersion": "1999-01-01"}, {"protocolVersion": 7}, {}])
async def test_an_unknown_or_missing_version_gets_the_servers_default(params: dict[str, Any]) -> None:
    client = MemoryClient(full_server())
    assert (await client.request("initialize", params))["protocolVersion"] == V2025_11_25


async def test_the_stateless_revision_is_not_negotiated_by_handshake() -> None:
    client = MemoryClient(full_server())
    result = await client.request("initialize", {"protocolVersion": V2026_07_28})
    assert result["protocolVersion"] == V2025_11_25


# Fields of each revision

TOOL_FIELDS = {
    V2024_11_05: {"name", "inputSchema"},
    V2025_03_26: {"name", "inputSchema", "annotations"},
    V2025_06_18: {"name", "inputSchema", "annotations", "title"},
    V2025_11_25: {"name", "inputSchema", "annotations", "title"},
    V2026_07_28: {"name", "inputSchema", "annotations", "title"},
}
INFO_FIELDS = {
    V2024_11_05: {"name", "version"},
    V2025_03_26: {"name", "version"},
    V2025_06_18: {"name", "version", "title"},
    V2025_11_25: {"name", "version", "title", "description", "websiteUrl", "icons"},
}


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_tool_is_described_with_the_fields_of_the_revision(version: str) -> None:
    async with MemoryClient(full_server(), version) as client:
        tools = {tool["name"]: tool for tool in (await client.request("tools/list"))["tools"]}
    assert tools["echo"].keys() == TOOL_FIELDS[version]
    assert ("outputSchema" in tools["add"]) == (version >= V2025_06_18)


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
async def test_the_server_info_has_the_fields_of_the_revision(version: str) -> None:
    client = MemoryClient(full_server())
    result = await client.request("initialize", {"protocolVersion": version})
    assert result["serverInfo"].keys() == INFO_FIELDS[version]
    assert ("completions" in result["capabilities"]) == (version >= V2025_03_26)


@pytest.mark.parametrize("version", VERSIONS)
async def test_structured_content_is_sent_only_in_revisions_that_have_it(version: str) -> None:
    async with MemoryClient(full_server(), version) as client:
        result = await client.call("add", {"a": 2, "b": 3})
    assert result["content"] == [{"type": "text", "text": '{"total":5}'}]
    assert result.get("structuredContent") == ({"total": 5} if version >= V2025_06_18 else None)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_missing_resource_has_the_error_code_of_the_revision(version: str) -> None:
    async with MemoryClient(full_server(), version) as client:
        error = await client.error("resources/read", {"uri": "memo://nowhere"})
    assert error["code"] == (-32602 if version == V2026_07_28 else -32002)
    assert error["data"] == {"uri": "memo://nowhere"}


# The stateless revision

META = "io.modelcontextprotocol/"


async def test_a_stateless_result_has_a_type_and_the_server_info() -> None:
    async with MemoryClient(full_server(), V2026_07_28) as client:
        for method, (params, _) in VALID_CALLS.items():
            if (method, V2026_07_28) not in SPECIFIED:
                continue
            result = await client.request(method, params)
            assert result["resultType"] == "complete"
            assert result["_meta"][META + "serverInfo"]["name"] == "full"
            cacheable = METHODS[method, V2026_07_28].cacheable
            assert ("ttlMs" in result, "cacheScope" in result) == (cacheable, cacheable), method


async def test_only_discovery_returns_the_full_server_info() -> None:
    async with MemoryClient(full_server(), V2026_07_28) as client:
        discovered = (await client.request("server/discover"))["_meta"][META + "serverInfo"]
        listed = (await client.request("tools/list"))["_meta"][META + "serverInfo"]
    assert discovered.keys() == INFO_FIELDS[V2025_11_25]
    assert listed == {"name": "full", "version": "1.2.3"}


async def test_handshake_results_have_no_stateless_members() -> None:
    async with MemoryClient(full_server(), V2025_11_25) as client:
        result = await client.request("tools/list")
    assert result.keys() == {"tools"}


async def test_both_eras_work_on_one_connection_in_any_order() -> None:
    server = full_server()
    async with MemoryClient(server, V2026_07_28) as client:
        await client.request("server/discover")
        client.version = V2025_06_18
        opened = await client.request("initialize", {"protocolVersion": V2025_06_18})
        assert opened["protocolVersion"] == V2025_06_18
        assert "resultType" not in await client.request("tools/list")
        client.version = V2026_07_28
        assert (await client.request("tools/list"))["resultType"] == "complete"
        client.version = V2025_06_18
        assert await client.request("ping") == {}


async def test_discover_without_a_version_in_meta_is_not_found_so_that_clients_fall_back() -> None:
    client = MemoryClient(full_server(), V2025_11_25)
    assert (await client.error("server/discover"))["code"] == -32601


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({META + "protocolVersion": V2026_07_28}, -32602),
        ({META + "protocolVersion": 20260728, META + "clientCapabilities": {}}, -32602),
        ({META + "protocolVersion": None, META + "clientCapabilities": {}}, -32602),
        ({META + "protocolVersion": V2026_07_28, META + "clientCapabilities": []}, -32602),
        (
            {META + "protocolVersion": V2026_07_28, META + "clientCapabilities": {}, META + "logLevel": "x"},
            -32602,
        ),
        (
            {META + "protocolVersion": V2026_07_28, META + "clientCapabilities": {}, "progressToken": 1.5},
            -32602,
        ),
        ({META + "protocolVersion": "1900-01-01", META + "clientCapabilities": {}}, -32022),
        ({META + "protocolVersion": V2025_11_25, META + "clientCapabilities": {}}, -32022),
        ({META + "protocolVersion": "1900-01-01"}, -32602),
    ],
)
async def test_an_invalid_meta_is_refused(meta: dict[str, Any], code: int) -> None:
    client = MemoryClient(full_server(), V2025_11_25)
    error = await client.error("tools/list", {}, meta=meta)
    assert error["code"] == code
    if code == -32022:
        assert error["data"] == {"supported": [V2026_07_28], "requested": meta[META + "protocolVersion"]}


async def test_the_client_info_is_optional() -> None:
    client = MemoryClient(full_server(), V2025_11_25)
    meta = {META + "protocolVersion": V2026_07_28, META + "clientCapabilities": {}}
    assert (await client.request("tools/list", {}, meta=meta))["resultType"] == "complete"


async def test_requests_before_a_handshake_use_the_servers_default_revision() -> None:
    client = MemoryClient(full_server(), V2025_11_25)
    assert "tools" in await client.request("tools/list")
