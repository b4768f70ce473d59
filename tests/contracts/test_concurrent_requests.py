"""A server responds to more concurrent requests than it has connections to PostgreSQL."""

from __future__ import annotations

from contextlib import ExitStack
from http.client import HTTPResponse
from socket import create_connection, socket
from typing import Any

import msgspec
import pytest

from tests.contracts.contract_replay import ServerVariant, WorkspaceLocation, database
from tests.contracts.http_server_process import BOTH, JSON, TIMEOUT_SECONDS, routing_headers
from tests.contracts.library_fixtures import ENVELOPE
from tests.contracts.resettable_workspace import ResettableWorkspace

CLIENTS = 40


@pytest.fixture
def variant() -> ServerVariant:
    return ServerVariant("http", "postgres")


def frame(number: int, tool: str, **arguments: object) -> bytes:
    params = {"name": tool, "arguments": arguments, "_meta": ENVELOPE}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def http_request(body: bytes) -> bytes:
    """Encode a whole HTTP request."""
    headers = {"Host": "localhost", "Content-Type": JSON, "Accept": BOTH, **routing_headers(body)}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /mcp HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def read_result(connection: socket) -> Any:
    """Read the response on a connection and return the structured result."""
    response = HTTPResponse(connection)
    response.begin()
    with response:
        assert response.status == 200
        result = msgspec.json.decode(response.read())["result"]
    assert result["isError"] is False, result
    return result["structuredContent"]


def send_all(connections: list[socket], frames: list[bytes]) -> list[Any]:
    """Send every frame on its own connection before reading any response; return the results."""
    for connection, body in zip(connections, frames, strict=True):
        connection.sendall(http_request(body))
    return [read_result(connection) for connection in connections]


def test_concurrent_reads_and_writes_all_succeed(
    location: WorkspaceLocation, postgres_workspace: ResettableWorkspace
) -> None:
    host = postgres_workspace.hosts.get_or_start("--profile", "all", *database(location), env={})
    with ExitStack() as stack:
        connections = [
            stack.enter_context(create_connection(host.address, timeout=TIMEOUT_SECONDS))
            for _ in range(CLIENTS)
        ]
        added = [frame(n, "add_prompt", title=f"Prompt {n}", content=f"Words {n}") for n in range(CLIENTS)]
        ids = [prompt["id"] for prompt in send_all(connections, added)]
        assert len(set(ids)) == CLIENTS
        read = [frame(n, "get_prompt", id=identity) for n, identity in enumerate(ids)]
        for _ in range(3):
            found = send_all(connections, read)
            assert [prompt["content"] for prompt in found] == [f"Words {n}" for n in range(CLIENTS)]
