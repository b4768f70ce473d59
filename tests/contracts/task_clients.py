"""Clients of the profile `agent` that claim tasks, on stdio and HTTP, whose calls can be given up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import count
from typing import Any, Self

import msgspec
import pytest

from tests.contracts.contract_replay import VARIANTS, Json, WorkspaceLocation, database, initialize
from tests.contracts.http_server_process import BOTH, JSON, HttpServerProcess, McpHttpClient, routing_headers
from tests.contracts.library_fixtures import ENVELOPE
from tests.stdio_server_process import StdioServerProcess

#: For tests with servers of one transport.
on_stdio = pytest.mark.parametrize(
    "variant", [variant for variant in VARIANTS if variant.transport == "stdio"], ids=str
)
on_http = pytest.mark.parametrize(
    "variant", [variant for variant in VARIANTS if variant.transport == "http"], ids=str
)

#: The maximum time from a change to its effect on another client.
MAX_SECONDS = 1.0


def tool_request(request_id: object, tool: str, arguments: Json, **meta: Any) -> Json:
    params = {"name": tool, "arguments": arguments} | ({"_meta": meta} if meta else {})
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def structured(response: Json) -> Json:
    """Return the data of a response to a tool call that succeeded."""
    result: Json = response["result"]
    assert not result["isError"], result
    data: Json = result["structuredContent"]
    return data


class StdioTaskClient:
    """A client with a server process of its own."""

    def __init__(self, location: WorkspaceLocation, *, profile: str = "agent") -> None:
        self.wire = StdioServerProcess("dittybag", "serve", "--profile", profile, *database(location))
        self._ids = count(1)
        self.wire.handshake()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.__exit__(None, None, None)

    def send(self, tool: str, /, **arguments: Any) -> int:
        """Send a call that asks for progress, and return its id."""
        number = next(self._ids)
        self.wire.send(msgspec.json.encode(tool_request(number, tool, arguments, progressToken=number)))
        return number

    def response(self, number: int, seconds: float = 10.0) -> Json:
        """Return the response to a call. Notifications before it are ignored."""
        deadline = time.monotonic() + seconds
        while (message := self.wire.message(deadline - time.monotonic())).get("id") != number:
            assert "id" not in message, message
        response: Json = message
        return response

    def responses_until(self, number: int) -> dict[int, Json]:
        """Return the responses up to that to a call, by id."""
        found: dict[int, Json] = {}
        while number not in found:
            message = self.wire.message()
            if "id" in message:
                found[message["id"]] = message
        return found

    def data(self, tool: str, /, **arguments: Any) -> Json:
        return structured(self.response(self.send(tool, **arguments)))

    def start_waiting(self, **arguments: Any) -> int:
        """Call `task_next`, return its id as soon as it waits."""
        number = self.send("task_next", wait="1m", **arguments)
        while (message := self.wire.message()).get("method") != "notifications/progress":
            assert "id" not in message, message
        assert message["params"]["progressToken"] == number
        assert message["params"]["total"] == 60
        return number

    def cancel(self, number: int) -> None:
        params = {"requestId": number}
        frame = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        self.wire.send(msgspec.json.encode(frame))


@contextmanager
def waiting_over_http(
    host: HttpServerProcess, client: McpHttpClient | None, *, stateless: bool = False
) -> Iterator[HTTPConnection]:
    """Call `task_next` and leave when it waits; the connection is closed at the end of the block.

    `client`: in the session of this client; `None` for no session.
    """
    meta = {**(ENVELOPE if stateless else {}), "progressToken": "p"}
    frame = msgspec.json.encode(tool_request(77, "task_next", {"wait": "1m"}, **meta))
    headers = {"Content-Type": JSON, "Accept": BOTH, **routing_headers(frame)}
    connection = host.connect()
    try:
        connection.request("POST", "/mcp", frame, headers | ({} if client is None else client.headers()))
        # The response starts with the first notification of progress.
        response = connection.getresponse()
        assert response.status == 200
        while b"notifications/progress" not in response.readline():
            continue
        yield connection
    finally:
        connection.close()


@contextmanager
def open_session(host: HttpServerProcess) -> Iterator[McpHttpClient]:
    """Open a session of a client over HTTP."""
    client = McpHttpClient(host)
    try:
        client.exchange(msgspec.json.encode({"jsonrpc": "2.0", "id": 0, **initialize("2025-11-25")}))
        client.notify(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        yield client
    finally:
        client.close()
