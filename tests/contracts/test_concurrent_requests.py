"""More clients at once than a server has connections to PostgreSQL: every one is answered."""

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


def in_one_piece(sent: bytes) -> bytes:
    """A request as it goes over the wire."""
    headers = {"Host": "localhost", "Content-Type": JSON, "Accept": BOTH, **routing_headers(sent)}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /mcp HTTP/1.1\r\n{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent


def answered(connection: socket) -> Any:
    """What the tool answers for which a connection waits."""
    answer = HTTPResponse(connection)
    answer.begin()
    with answer:
        assert answer.status == 200
        result = msgspec.json.decode(answer.read())["result"]
    assert result["isError"] is False, result
    return result["structuredContent"]


def all_at_once(connections: list[socket], frames: list[bytes]) -> list[Any]:
    """Send every frame on a connection of its own before any answer is read; the answers."""
    for connection, sent in zip(connections, frames, strict=True):
        connection.sendall(in_one_piece(sent))
    return [answered(connection) for connection in connections]


def test_reads_and_writes_at_once_are_all_answered(
    location: WorkspaceLocation, postgres_workspace: ResettableWorkspace
) -> None:
    host = postgres_workspace.hosts.get_or_start("--profile", "all", *database(location), env={})
    with ExitStack() as stack:
        connections = [
            stack.enter_context(create_connection(host.address, timeout=TIMEOUT_SECONDS))
            for _ in range(CLIENTS)
        ]
        added = [frame(n, "add_prompt", title=f"Prompt {n}", content=f"Words {n}") for n in range(CLIENTS)]
        ids = [prompt["id"] for prompt in all_at_once(connections, added)]
        assert len(set(ids)) == CLIENTS
        read = [frame(n, "get_prompt", id=identity) for n, identity in enumerate(ids)]
        for _ in range(3):
            found = all_at_once(connections, read)
            assert [prompt["content"] for prompt in found] == [f"Words {n}" for n in range(CLIENTS)]
