"""Requests that need not wait, in one piece and in many, with heads that have come before and with others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.protocol.transports.http.client import META, STATELESS, Client
from tests.protocol.transports.http.raw import PLAIN, Raw, posted
from tests.protocol.transports.http.runner import Running

ERAS = pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])


def called(era: str, tool: str, id: Any, *, named: str | None = None, progress: bool = False) -> bytes:
    """A call outside of sessions. `named`: what the header says, if it is not the tool."""
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
    return posted(msgspec.json.encode(message), lines.encode())


def told(raw: Raw) -> Any:
    """The next answer, as JSON."""
    answer = raw.answer()
    assert answer is not None
    return msgspec.json.decode(answer[1])


@pytest.fixture
def raw(running: Running) -> Iterator[Raw]:
    with Raw(running.port) as raw:
        yield raw


@ERAS
def test_the_same_head_with_other_bodies(raw: Raw, era: str) -> None:
    for number in range(10, 40):
        raw.send(called(era, "test_simple_text", number))
        answer = told(raw)
        assert answer["id"] == number
        assert answer["result"]["content"][0]["type"] == "text"


@ERAS
def test_a_known_head_whose_body_comes_later(raw: Raw, era: str) -> None:
    raw.send(called(era, "test_simple_text", 1))
    assert told(raw)["id"] == 1
    for cut in (1, 5, 60):
        wire = called(era, "test_simple_text", 2)
        for piece in (wire[:-cut], wire[-cut:]):
            raw.send(piece)
        assert told(raw)["id"] == 2
    head, _, body = called(era, "test_simple_text", 3).partition(b"\r\n\r\n")
    for piece in (head, b"\r\n\r\n", body):
        raw.send(piece)
    assert told(raw)["id"] == 3
    raw.send(called(era, "test_simple_text", 4))
    assert told(raw)["id"] == 4


@ERAS
def test_several_requests_in_one_packet_are_answered_in_order(raw: Raw, era: str) -> None:
    for _ in range(2):
        raw.send(b"".join(called(era, "test_simple_text", number) for number in range(1, 8)))
        assert [told(raw)["id"] for _ in range(7)] == list(range(1, 8))
        raw.send(called(era, "test_simple_text", 8))
        assert told(raw)["id"] == 8


@ERAS
@pytest.mark.parametrize("known", [True, False])
def test_an_answer_waits_for_the_one_before_it(
    running: Running, raw: Raw, client: Client, era: str, *, known: bool
) -> None:
    raw.send(called(era, "test_simple_text", 0 if known else "another length"))
    assert told(raw)["id"] in (0, "another length")
    raw.send(called(era, "hold", 1))
    assert client.use("counts", {"held": 1}).result()["structuredContent"]["held"] == 1
    raw.send(called(era, "test_simple_text", 2))
    # It came in, and is not answered: another connection is served meanwhile.
    with Raw(running.port) as other:
        other.send(called(era, "test_simple_text", 3))
        assert told(other)["id"] == 3
    client.use("release")
    assert [told(raw)["id"] for _ in range(2)] == [1, 2]


@ERAS
def test_what_waits_behind_a_known_head_becomes_a_stream(raw: Raw, client: Client, era: str) -> None:
    for _ in range(3):
        raw.send(called(era, "hold", 7, progress=True))
        head = raw.head()
        assert head is not None
        assert head[1]["content-type"] == "text/event-stream"
        assert b"notifications/progress" in raw.piece()
        client.use("release")
        rest = b""
        while piece := raw.piece():
            rest += piece
        assert b'"released"' in rest
        raw.send(called(era, "test_simple_text", 8))
        assert told(raw)["id"] == 8


@ERAS
@pytest.mark.parametrize("version", [b"HTTP/1.0", b"HTTP/1.1"])
def test_a_connection_that_is_to_be_closed_is(running: Running, era: str, version: bytes) -> None:
    with Raw(running.port) as raw:
        wire = called(era, "test_simple_text", 1).replace(b"HTTP/1.1", version, 1)
        raw.send(wire.replace(b"Accept:", b"Connection: close\r\nAccept:", 1))
        head = raw.head()
        assert head is not None
        assert (head[0], head[1]["connection"]) == (200, "close")
        assert msgspec.json.decode(raw.rest())["id"] == 1


def test_a_known_head_must_still_agree_with_its_body(raw: Raw) -> None:
    right = called(STATELESS, "test_simple_text", 1)
    # As long as the other, so that their heads are the same.
    wrong = called(STATELESS, "test_simple_texx", 1, named="test_simple_text")
    assert right.partition(b"\r\n\r\n")[0] == wrong.partition(b"\r\n\r\n")[0]
    for _ in range(3):
        raw.send(right)
        assert "result" in told(raw)
        raw.send(wrong)
        answer = raw.answer()
        assert answer is not None
        assert (answer[0], msgspec.json.decode(answer[1])["error"]["code"]) == (400, -32020)


def test_a_head_that_is_refused_is_refused_again(raw: Raw) -> None:
    wire = called(STATELESS, "test_simple_text", 1).replace(b"Host: localhost", b"Host: elsewhere", 1)
    for _ in range(3):
        raw.send(wire)
        answer = raw.answer()
        assert answer is not None
        assert answer[0] == 421


@ERAS
def test_what_is_no_json_behind_a_known_head(raw: Raw, era: str) -> None:
    wire = called(era, "test_simple_text", 1)
    head, _, body = wire.partition(b"\r\n\r\n")
    for _ in range(3):
        raw.send(wire)
        assert told(raw)["id"] == 1
        raw.send(head + b"\r\n\r\n" + b"{" * len(body))
        answer = raw.answer()
        assert answer is not None
        assert (answer[0], msgspec.json.decode(answer[1])["error"]["code"]) == (400, -32700)


def test_more_heads_than_are_known(raw: Raw) -> None:
    for number in range(60):
        lines = f"X-Number: {number}\r\n".encode()
        wire = called("2025-11-25", "test_simple_text", number).replace(b"Accept:", lines + b"Accept:", 1)
        for _ in range(2):
            raw.send(wire)
            assert told(raw)["id"] == number


def test_to_go_away_is_not_to_cancel_where_sessions_are_usual(running: Running, client: Client) -> None:
    def held(count: int) -> bool:
        counted = client.use("counts", {"held": count}).result()["structuredContent"]
        return bool(counted["held"] == count)

    with Raw(running.port) as raw:
        raw.send(called("2025-11-25", "hold", 1))
        assert held(1)
        raw.kill()
    with Raw(running.port) as raw:
        raw.send(called(STATELESS, "hold", 1))
        assert held(2)
        raw.kill()
    # Only the stateless one has ended, because of that.
    assert held(1)
    client.use("release")
    assert held(0)


def test_a_quality_of_nothing_is_not_accepted(raw: Raw) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    for accept, status in (
        (b"application/json;q=0, text/event-stream;q=0.0", 406),
        (b"application/json; q=0.5", 200),
        (b"*/*;q=0", 406),
        (b"text/event-stream;q=1.000", 200),
    ):
        raw.send(posted(body).replace(PLAIN.partition(b"Accept: ")[2].strip(), accept, 1))
        answer = raw.answer()
        assert answer is not None
        assert answer[0] == status
