"""Responses that a client does not read use a bounded amount of memory."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from tests import postgres_servers
from tests.contracts.contract_replay import ServerVariant
from tests.contracts.http_server_process import HttpServerProcess
from tests.contracts.library_fixtures import ENVELOPE
from tests.contracts.test_concurrent_requests import http_request
from tests.http.raw_connection import RawConnection
from tests.repetitions import IS_FULL
from tests.stdio_server_process import StdioServerProcess

#: All responses together have 500 MB. Each is larger than the buffers of the system: a line break takes two
#: bytes.
REQUESTS = 60
CONTENT = "\n" * (4 * 1024 * 1024)
MAX_KILOBYTES = 400 * 1024


def read_frame(number: int) -> bytes:
    params = {"uri": "memo://large", "_meta": ENVELOPE}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": "resources/read", "params": params})


def create_frame() -> bytes:
    arguments = {"name": "large", "uri": "memo://large", "content": CONTENT}
    params = {"name": "create_resource", "arguments": arguments, "_meta": ENVELOPE}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": params})


@pytest.fixture(params=["sqlite", "postgres"] if IS_FULL else ["sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "dittybag.db")
    server: postgres_servers.PostgresServer = request.getfixturevalue("postgres")
    return server.socket_url(schema=f"unread_{request.node.originalname[-20:]}")


@pytest.fixture
def variant() -> ServerVariant:
    return ServerVariant()


def test_unread_responses_on_stdio_are_bounded_and_all_arrive_later(database: str) -> None:
    with StdioServerProcess("dittybag", "serve", "--profile", "mcpkg", "--db", database) as wire:
        wire.send(create_frame())
        wire.message()
        before = highest = wire.resident_kilobytes()
        wire.send(*map(read_frame, range(1, REQUESTS + 1)))
        numbers = set()
        for _ in range(REQUESTS):
            highest = max(highest, wire.resident_kilobytes())
            numbers.add(int(wire.line(30)[:40].split(b'"id":')[1].split(b",")[0]))
        assert numbers == set(range(1, REQUESTS + 1))
    assert highest - before < MAX_KILOBYTES


def test_unread_responses_over_http_are_bounded_and_others_are_served(database: str) -> None:
    with HttpServerProcess("--db", database) as host, ExitStack() as stack:
        port = host.address[1]
        with RawConnection(port, seconds=30) as honest:
            honest.send(http_request(create_frame()))
            honest.read_response()
            before = host.resident_kilobytes()
            slow = []
            for _ in range(REQUESTS):
                slow.append(stack.enter_context(RawConnection(port, seconds=30, buffer=4096)))
                slow[-1].send(http_request(read_frame(1)))
            heads = [connection.read_head() for connection in slow]
            statuses = [head[0] for head in heads if head is not None]
            assert host.resident_kilobytes() - before < MAX_KILOBYTES
            assert statuses.count(200) >= 15
            assert statuses.count(503) == REQUESTS - statuses.count(200) > 0
            ping = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}
            honest.send(http_request(msgspec.json.encode(ping)))
            response = honest.read_response()
            assert response is not None
            assert response[0] == 200
        for connection in slow:
            connection.kill()
        with RawConnection(port, seconds=30) as later:
            later.send(http_request(read_frame(1)))
            response = later.read_response()
            assert response is not None
            assert response[0] == 200
