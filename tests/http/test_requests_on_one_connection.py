"""Requests on one connection: complete, partial and pipelined, with equal and different heads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.http.plain_http_client import META, STATELESS, PlainHttpClient
from tests.http.raw_connection import POST_HEAD, RawConnection, post_request
from tests.http.spawned_server import SpawnedServer

ERAS = pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])


def call_request(era: str, tool: str, id: Any, *, named: str | None = None, progress: bool = False) -> bytes:
    """Return a call outside of sessions. `named`: the value of `Mcp-Name`, if it is not the tool."""
    params: dict[str, Any] = {
        "name": tool,
        "arguments": {},
        "_meta": {"progressToken": 1} if progress else {},
    }
    lines = f"MCP-Protocol-Version: {era}\r\n"
    if era == STATELESS:
        params["_meta"] |= {f"{META}protocolVersion": era, f"{META}clientCapabilities": {}}
        lines += f"Mcp-Method: tools/call\r\nMcp-Name: {named or tool}\r\n"
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    return post_request(msgspec.json.encode(message), lines.encode())


def read_json(raw: RawConnection) -> Any:
    """Return the next response, decoded."""
    response = raw.read_response()
    assert response is not None
    return msgspec.json.decode(response[1])


def read_refusal(raw: RawConnection) -> tuple[int, int]:
    """Return the status and the error code of the next response."""
    response = raw.read_response()
    assert response is not None
    return response[0], msgspec.json.decode(response[1])["error"]["code"]


@pytest.fixture
def raw(running: SpawnedServer) -> Iterator[RawConnection]:
    with RawConnection(running.port) as raw:
        yield raw


@ERAS
def test_equal_heads_work_with_different_bodies(raw: RawConnection, era: str) -> None:
    for number in range(10, 40):
        raw.send(call_request(era, "test_simple_text", number))
        response = read_json(raw)
        assert response["id"] == number
        assert response["result"]["content"][0]["type"] == "text"


@ERAS
def test_a_body_may_arrive_later_than_its_head(raw: RawConnection, era: str) -> None:
    raw.send(call_request(era, "test_simple_text", 1))
    assert read_json(raw)["id"] == 1
    for cut in (1, 5, 60):
        wire = call_request(era, "test_simple_text", 2)
        for part in (wire[:-cut], wire[-cut:]):
            raw.send(part)
        assert read_json(raw)["id"] == 2
    head, _, body = call_request(era, "test_simple_text", 3).partition(b"\r\n\r\n")
    for part in (head, b"\r\n\r\n", body):
        raw.send(part)
    assert read_json(raw)["id"] == 3
    raw.send(call_request(era, "test_simple_text", 4))
    assert read_json(raw)["id"] == 4


@ERAS
def test_pipelined_requests_are_answered_in_order(raw: RawConnection, era: str) -> None:
    for _ in range(2):
        raw.send(b"".join(call_request(era, "test_simple_text", number) for number in range(1, 8)))
        assert [read_json(raw)["id"] for _ in range(7)] == list(range(1, 8))
        raw.send(call_request(era, "test_simple_text", 8))
        assert read_json(raw)["id"] == 8


@ERAS
@pytest.mark.parametrize("is_equal", [True, False])
def test_a_response_waits_for_the_previous_one(
    running: SpawnedServer, raw: RawConnection, client: PlainHttpClient, era: str, *, is_equal: bool
) -> None:
    raw.send(call_request(era, "test_simple_text", 0 if is_equal else "another length"))
    assert read_json(raw)["id"] in (0, "another length")
    raw.send(call_request(era, "hold", 1))
    assert client.counts(held=1)["held"] == 1
    raw.send(call_request(era, "test_simple_text", 2))
    # It is received but not answered; another connection is served in the meantime.
    with RawConnection(running.port) as other:
        other.send(call_request(era, "test_simple_text", 3))
        assert read_json(other)["id"] == 3
    client.use("release")
    assert [read_json(raw)["id"] for _ in range(2)] == [1, 2]


@ERAS
def test_a_slow_request_becomes_a_stream(raw: RawConnection, client: PlainHttpClient, era: str) -> None:
    for _ in range(3):
        raw.send(call_request(era, "hold", 7, progress=True))
        head = raw.read_head()
        assert head is not None
        assert head[1]["content-type"] == "text/event-stream"
        assert b"notifications/progress" in raw.read_chunk()
        client.use("release")
        rest = b""
        while chunk := raw.read_chunk():
            rest += chunk
        assert b'"released"' in rest
        raw.send(call_request(era, "test_simple_text", 8))
        assert read_json(raw)["id"] == 8


@ERAS
@pytest.mark.parametrize("version", [b"HTTP/1.0", b"HTTP/1.1"])
def test_connection_close_is_honoured(running: SpawnedServer, era: str, version: bytes) -> None:
    with RawConnection(running.port) as raw:
        wire = call_request(era, "test_simple_text", 1).replace(b"HTTP/1.1", version, 1)
        raw.send(wire.replace(b"Accept:", b"Connection: close\r\nAccept:", 1))
        head = raw.read_head()
        assert head is not None
        assert (head[0], head[1]["connection"]) == (200, "close")
        assert msgspec.json.decode(raw.read_to_end())["id"] == 1


def test_an_equal_head_must_match_each_body(raw: RawConnection) -> None:
    right = call_request(STATELESS, "test_simple_text", 1)
    # The same length, so that the heads are identical.
    wrong = call_request(STATELESS, "test_simple_texx", 1, named="test_simple_text")
    assert right.partition(b"\r\n\r\n")[0] == wrong.partition(b"\r\n\r\n")[0]
    for _ in range(3):
        raw.send(right)
        assert "result" in read_json(raw)
        raw.send(wrong)
        assert read_refusal(raw) == (400, -32020)


def test_a_refused_head_is_refused_again(raw: RawConnection) -> None:
    wire = call_request(STATELESS, "test_simple_text", 1).replace(b"Host: localhost", b"Host: elsewhere", 1)
    for _ in range(3):
        raw.send(wire)
        response = raw.read_response()
        assert response is not None
        assert response[0] == 421


@ERAS
def test_invalid_json_between_valid_requests_is_refused(raw: RawConnection, era: str) -> None:
    wire = call_request(era, "test_simple_text", 1)
    head, _, body = wire.partition(b"\r\n\r\n")
    for _ in range(3):
        raw.send(wire)
        assert read_json(raw)["id"] == 1
        raw.send(head + b"\r\n\r\n" + b"{" * len(body))
        assert read_refusal(raw) == (400, -32700)


def test_many_different_heads_on_one_connection(raw: RawConnection) -> None:
    for number in range(60):
        lines = f"X-Number: {number}\r\n".encode()
        wire = call_request("2025-11-25", "test_simple_text", number).replace(
            b"Accept:", lines + b"Accept:", 1
        )
        for _ in range(2):
            raw.send(wire)
            assert read_json(raw)["id"] == number


def test_a_disconnect_cancels_only_stateless_requests(
    running: SpawnedServer, client: PlainHttpClient
) -> None:
    with RawConnection(running.port) as raw:
        raw.send(call_request("2025-11-25", "hold", 1))
        assert client.counts(held=1)["held"] == 1
        raw.kill()
    with RawConnection(running.port) as raw:
        raw.send(call_request(STATELESS, "hold", 1))
        assert client.counts(held=2)["held"] == 2
        raw.kill()
    # Only the stateless request was cancelled.
    assert client.counts(held=1)["held"] == 1
    client.use("release")
    assert client.counts(held=0)["held"] == 0


def test_a_media_type_with_quality_zero_is_not_accepted(raw: RawConnection) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    for accept, status in (
        (b"application/json;q=0, text/event-stream;q=0.0", 406),
        (b"application/json; q=0.5", 200),
        (b"*/*;q=0", 406),
        (b"text/event-stream;q=1.000", 200),
    ):
        raw.send(post_request(body).replace(POST_HEAD.partition(b"Accept: ")[2].strip(), accept, 1))
        response = raw.read_response()
        assert response is not None
        assert response[0] == status


@ERAS
def test_a_call_runs_in_one_task(raw: RawConnection, era: str) -> None:
    for number in range(3):
        raw.send(call_request(era, "task", number))
        assert read_json(raw)["result"]["content"][0]["text"] == "True"


def test_a_disconnect_cancels_a_request_with_pipelined_ones_behind_it(
    running: SpawnedServer, client: PlainHttpClient
) -> None:
    with RawConnection(running.port) as raw:
        raw.send(call_request(STATELESS, "hold", 1) + call_request(STATELESS, "test_simple_text", 2) * 3)
        assert client.counts(held=1)["held"] == 1
        raw.kill()
    assert client.counts(held=0)["held"] == 0


def test_many_pipelined_requests_behind_a_slow_one_are_answered_in_order(
    raw: RawConnection, client: PlainHttpClient
) -> None:
    raw.send(call_request(STATELESS, "hold", 0))
    assert client.counts(held=1)["held"] == 1
    for number in range(1, 60):
        raw.send(call_request(STATELESS, "test_simple_text", number))
    client.use("release")
    assert [read_json(raw)["id"] for _ in range(60)] == list(range(60))


def test_a_chunked_body_is_accepted(raw: RawConnection) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    parts = (body[:7], body[7:20], body[20:])
    for _ in range(2):
        raw.send(POST_HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for part in parts:
            raw.send(b"%x\r\n%b\r\n" % (len(part), part))
        raw.send(b"0\r\n\r\n")
        assert read_json(raw) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_a_client_may_wait_for_100_continue(raw: RawConnection) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    raw.send(POST_HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
    assert raw.read_head() == (100, {})
    raw.send(body)
    assert read_json(raw)["result"] == {}


def test_an_upgrade_is_ignored_and_the_connection_closed(raw: RawConnection) -> None:
    more = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
    raw.send(post_request(b"", more))
    response = raw.read_response()
    assert response is not None
    assert response[0] == 400
    assert raw.read_to_end() == b""


@pytest.mark.parametrize("garbage", [b"\0\0\r\n\r\n", b"GET\r\n\r\n", b"POST /mcp HTTP/1.1\r\nHost\r\n\r\n"])
def test_requests_before_garbage_are_answered(raw: RawConnection, garbage: bytes) -> None:
    raw.send(call_request(STATELESS, "test_simple_text", 1) + garbage)
    assert read_json(raw)["id"] == 1
    assert raw.read_to_end().count(b"HTTP/1.1") <= 1


def test_a_body_with_an_invalid_chunk_is_refused(raw: RawConnection) -> None:
    raw.send(POST_HEAD + b"Transfer-Encoding: chunked\r\n\r\nnot a size\r\n")
    response = raw.read_response()
    assert response is not None
    assert response[0] == 400
    assert raw.read_to_end() == b""


def test_a_stream_to_an_old_client_ends_with_the_connection(
    running: SpawnedServer, client: PlainHttpClient
) -> None:
    with RawConnection(running.port) as raw:
        raw.send(call_request(STATELESS, "hold", 1, progress=True).replace(b"HTTP/1.1", b"HTTP/1.0", 1))
        head = raw.read_head()
        assert head is not None
        assert "transfer-encoding" not in head[1]
        client.use("release")
        assert b'"released"' in raw.read_to_end()
