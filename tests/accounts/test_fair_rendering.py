"""Rendering is shared fairly: slow templates of one client do not delay the renderings of another."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.accounts.accounts_world import World, auth_headers
from tests.contracts.http_server_process import BOTH, JSON, HttpServerProcess, send_request
from tests.contracts.library_fixtures import write_twig_library

ENDLESS = "{% for a in range(100000) %}" * 5 + "{% endfor %}" * 5
#: A client uses two child processes at a time, and each may finish one job while another is started.
MOST_ANSWERED = 6


def message(name: str) -> bytes:
    params = {"name": name, "arguments": {"who": "Ann"}}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": params})


@pytest.fixture
def host(own_world: World) -> HttpServerProcess:
    libraries = Path(own_world.folder) / "libraries"
    write_twig_library(libraries / "lib", {"slow": ENDLESS, "greeting": "Hello {{ who }}"}, "who")
    return own_world.host("all")


@contextmanager
def waiting(host: HttpServerProcess, token: str, name: str, count: int) -> Iterator[list[HTTPConnection]]:
    """Send the same request on many connections without reading the responses."""
    connections = [host.connect() for _ in range(count)]
    headers = {"Content-Type": JSON, "Accept": BOTH, **auth_headers(token)}
    for connection in connections:
        connection.request("POST", "/mcp", message(name), headers)
    try:
        yield connections
    finally:
        for connection in connections:
            connection.close()


def answered(connections: list[HTTPConnection]) -> int:
    """The number of connections on which a response has arrived."""
    return len(select.select([connection.sock for connection in connections], [], [], 0)[0])


def get(host: HttpServerProcess, token: str, name: str) -> Any:
    headers = {"Content-Type": JSON, "Accept": BOTH, **auth_headers(token)}
    with closing(host.connect()) as connection:
        return send_request(connection, "POST", "/mcp", message(name), headers).message()


def test_a_rendering_does_not_wait_for_the_slow_templates_of_another_user(
    own_world: World, host: HttpServerProcess
) -> None:
    slow, honest, *_ = own_world.holders
    assert slow.user != honest.user
    assert "result" in get(host, honest.token, "lib:greeting")
    with waiting(host, slow.token, "lib:slow", 100) as connections:
        # All have arrived once the first of them is answered.
        assert select.select([connection.sock for connection in connections], [], [], 10)[0]
        before = answered(connections)
        for _ in range(3):
            (rendered,) = get(host, honest.token, "lib:greeting")["result"]["messages"]
            assert rendered["content"]["text"] == "Hello Ann"
        assert answered(connections) - before <= MOST_ANSWERED
