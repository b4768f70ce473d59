"""Every JSON example of the protocol contract, replayed over every transport."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from dittybag.protocol.eras.versions import V2024_11_05
from tests.contracts.example_server import build
from tests.contracts.http_server_process import HttpServerProcess, McpHttpClient
from tests.protocol.memory_client import MemoryClient
from tests.stdio_server_process import StdioServerProcess

CONTRACT = Path(__file__).with_name("mcp-protocol.md").read_text()


def _examples() -> list[list[Any]]:
    """Return the JSON values of each code block; a block may have a request, a response and an error."""
    blocks = re.findall(r"```json\n(.*?)```", CONTRACT, re.DOTALL)
    texts = [re.split(r"^// .*\n", block, flags=re.MULTILINE) for block in blocks]
    return [[msgspec.json.decode(text) for text in parts if text.strip()] for parts in texts]


EXAMPLES = _examples()
(
    MESSAGE_FORMAT,
    INITIALIZE_REQUEST,
    INITIALIZE_RESPONSE,
    LIST_TOOLS,
    CALL_TOOL,
    LIST_RESOURCES,
    READ_RESOURCE,
    RESOURCE_TEMPLATES,
    LIST_PROMPTS,
    GET_PROMPT,
    TEXT_CONTENT,
    IMAGE_CONTENT,
    RESOURCE_CONTENT,
) = EXAMPLES


class ExampleClient(Protocol):
    async def ask(self, message: dict[str, Any]) -> Any: ...


class _MemoryExampleClient:
    def __init__(self) -> None:
        self._client = MemoryClient(build())

    async def ask(self, message: dict[str, Any]) -> Any:
        self._client.send(msgspec.json.encode(message))
        return await self._client.next()


class _StdioExampleClient:
    def __init__(self, wire: StdioServerProcess) -> None:
        self._wire = wire

    async def ask(self, message: dict[str, Any]) -> Any:
        return self._wire.ask(message)


class _HttpExampleClient:
    def __init__(self, client: McpHttpClient) -> None:
        self._client = client

    async def ask(self, message: dict[str, Any]) -> Any:
        return self._client.exchange(msgspec.json.encode(message))


@pytest.fixture(scope="module")
def host() -> Iterator[HttpServerProcess]:
    """The server over HTTP; each client opens its own session."""
    with HttpServerProcess(module="tests.contracts.example_server_http") as started:
        yield started


@pytest.fixture(params=["memory", "stdio", "http"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[ExampleClient]:
    """A client that has sent nothing yet."""
    if request.param == "memory":
        yield _MemoryExampleClient()
    elif request.param == "stdio":
        with StdioServerProcess("tests.contracts.example_server") as wire:
            yield _StdioExampleClient(wire)
    else:
        with closing(McpHttpClient(request.getfixturevalue("host"))) as http_client:
            yield _HttpExampleClient(http_client)


@pytest.fixture
async def opened(client: ExampleClient) -> ExampleClient:
    """A client that has opened its session as the contract shows."""
    await client.ask(INITIALIZE_REQUEST[0])
    return client


async def test_the_response_to_initialize_matches_the_contract(client: ExampleClient) -> None:
    assert await client.ask(INITIALIZE_REQUEST[0]) == INITIALIZE_RESPONSE[0]
    assert INITIALIZE_RESPONSE[0]["result"]["protocolVersion"] == V2024_11_05


async def test_the_message_format_matches_the_contract(opened: ExampleClient) -> None:
    request, response, error = MESSAGE_FORMAT
    actual = await opened.ask(request)
    assert actual == {**response, "result": {**response["result"], "isError": False}}
    refused = await opened.ask({"id": 1, "method": "tools/call"})
    assert refused.keys() == error.keys()
    assert refused["error"]["code"] == error["error"]["code"]
    assert refused["error"]["message"].startswith(error["error"]["message"])


async def test_tools_are_listed_as_in_the_contract(opened: ExampleClient) -> None:
    request, response = LIST_TOOLS
    actual = await opened.ask(request)
    assert actual["id"] == response["id"]
    assert actual["result"]["tools"][:1] == response["result"]["tools"]


@pytest.mark.parametrize("example", [CALL_TOOL, READ_RESOURCE, LIST_PROMPTS, GET_PROMPT, LIST_RESOURCES])
async def test_the_response_matches_the_contract_exactly(opened: ExampleClient, example: list[Any]) -> None:
    request, response = example
    assert await opened.ask(request) == response


async def test_resource_templates_are_listed_as_in_the_contract(opened: ExampleClient) -> None:
    actual = await opened.ask({"jsonrpc": "2.0", "id": 8, "method": "resources/templates/list"})
    assert actual["result"] == RESOURCE_TEMPLATES[0]


async def test_every_content_type_matches_the_contract(opened: ExampleClient) -> None:
    actual = await opened.ask(
        {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "content"}}
    )
    text, image, resource = actual["result"]["content"]
    assert text == TEXT_CONTENT[0]
    assert image == {**IMAGE_CONTENT[0], "data": "YmFzZTY0"}
    assert resource == RESOURCE_CONTENT[0]


@pytest.mark.parametrize(
    ("frame", "code", "name"),
    [
        (b"{", -32700, "Parse Error"),
        (b'{"jsonrpc":"2.0","id":1}', -32600, "Invalid Request"),
        (b'{"jsonrpc":"2.0","id":1,"method":"no/such"}', -32601, "Method Not Found"),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}', -32602, "Invalid Params"),
    ],
)
async def test_every_error_code_has_the_meaning_in_the_contract(
    host: HttpServerProcess, frame: bytes, code: int, name: str
) -> None:
    assert f"| {code} | {name} |" in CONTRACT
    client = MemoryClient(build())
    client.send(frame)
    assert (await client.next())["error"]["code"] == code
    with closing(McpHttpClient(host)) as http_client:
        assert http_client.exchange(frame)["error"]["code"] == code
