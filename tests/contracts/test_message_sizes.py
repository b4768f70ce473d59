"""The largest messages: the same limits on stdio and HTTP, and whatever is stored can be read."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from tests.contracts.contract_replay import dittybag
from tests.contracts.http_server_process import BOTH, JSON, HttpServerProcess
from tests.stdio_server_process import StdioServerProcess

MIB = 1024 * 1024
MESSAGE_BYTES = 12 * MIB


class Client(Protocol):
    def ask(self, method: str, **params: Any) -> Any: ...


class SizedStdioClient:
    def __init__(self, wire: StdioServerProcess) -> None:
        self._wire = wire

    def ask(self, method: str, **params: Any) -> Any:
        self._wire.send(frame(method, params))
        while "id" not in (response := self._wire.message(30)):
            pass
        return response


class SizedHttpClient:
    def __init__(self, host: HttpServerProcess) -> None:
        self._host = host

    def ask(self, method: str, **params: Any) -> Any:
        return self._host.post(frame(method, params), "/mcp").json()


def frame(method: str, params: Any) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


@pytest.fixture(params=["stdio", "http"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    database = str(tmp_path / "dittybag.db")
    if request.param == "stdio":
        with StdioServerProcess("dittybag", "serve", "--db", database) as wire:
            wire.handshake()
            yield SizedStdioClient(wire)
    else:
        with HttpServerProcess("--db", database) as host:
            yield SizedHttpClient(host)


#: The largest contents that fit into a message: what is sent, and its type.
CONTENTS = {
    "text": ("x" * (4 * MIB), "text/plain"),
    "text in two bytes": ("é" * (2 * MIB), "text/plain"),
    "line breaks": ("\n" * (4 * MIB), "text/plain"),
    "quotes": ('"\\' * (2 * MIB), "text/plain"),
    "base64": (base64.b64encode(bytes(range(256)) * (16 * 1024)).decode(), "image/png"),
    "control characters": ("\x01" * 1_990_000, "text/plain"),
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_the_largest_contents_are_stored_and_read_back(client: Client, kind: str) -> None:
    content, mime_type = CONTENTS[kind]
    resource = {"name": "large", "uri": "memo://large", "content": content, "mime_type": mime_type}
    created = client.ask("tools/call", name="create_resource", arguments=resource)
    assert created["result"]["isError"] is False, created["result"]["content"]
    (part,) = client.ask("resources/read", uri="memo://large")["result"]["contents"]
    assert part.get("text", part.get("blob")) == content


@pytest.mark.parametrize("content", ["\x01" * MIB, '"' * MIB])
def test_the_largest_prompt_can_be_read_by_every_tool(client: Client, content: str) -> None:
    added = {"title": "Large", "content": content}
    created = client.ask("tools/call", name="add_prompt", arguments=added)["result"]
    prompt = msgspec.json.decode(created["content"][0]["text"])
    result = client.ask("tools/call", name="get_prompt", arguments={"id": prompt["id"]})["result"]
    assert msgspec.json.decode(result["content"][0]["text"])["content"] == content
    (message,) = client.ask("prompts/get", name="large")["result"]["messages"]
    assert message["content"]["text"] == content


def test_contents_stored_by_a_command_can_be_read_even_if_every_character_is_escaped(tmp_path: Path) -> None:
    database, file = str(tmp_path / "dittybag.db"), tmp_path / "controls.txt"
    file.write_bytes(b"\x01" * (4 * MIB))
    dittybag("resource", "add", str(file), "--uri", "memo://controls", "--db", database)
    with (
        HttpServerProcess("--db", database) as host,
        StdioServerProcess("dittybag", "serve", "--db", database) as wire,
    ):
        wire.handshake()
        for client in (SizedHttpClient(host), SizedStdioClient(wire)):
            (part,) = client.ask("resources/read", uri="memo://controls")["result"]["contents"]
            assert part["text"] == "\x01" * (4 * MIB)


def test_a_message_over_the_limit_is_refused_with_the_same_code_on_both_transports(client: Client) -> None:
    for size in (MESSAGE_BYTES, 2 * MESSAGE_BYTES):
        error = client.ask("tools/call", name="create_prompt", arguments={"content": "x" * size})["error"]
        assert error["code"] == -32600
        assert f"at most {MESSAGE_BYTES} bytes" in error["message"]


@pytest.mark.parametrize("path", ["/mcp", "/"])
@pytest.mark.parametrize("is_chunked", [False, True], ids=["with a length", "in chunks"])
def test_a_client_that_sends_its_whole_body_before_it_reads_sees_the_refusal(
    tmp_path: Path, path: str, *, is_chunked: bool
) -> None:
    with HttpServerProcess("--db", str(tmp_path / "dittybag.db")) as host:
        for _ in range(5):
            connection = HTTPConnection(*host.address, timeout=20)
            body = (b" " * MIB for _ in range(30))
            length = {} if is_chunked else {"Content-Length": str(30 * MIB)}
            headers = {"Content-Type": JSON, "Accept": BOTH, **length}
            connection.request("POST", path, body, headers, encode_chunked=is_chunked)
            response = connection.getresponse()
            assert response.status == 413
            assert msgspec.json.decode(response.read())["error"]["code"] == -32600
            connection.close()
