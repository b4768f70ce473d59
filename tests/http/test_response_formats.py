"""Response formats: JSON if there is only a response, an event stream if there are other messages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.plain_http_client import (
    JSON,
    META,
    Pairs,
    PlainHttpClient,
    call,
    request,
)

PROGRESS_TOKEN: Any = {"progressToken": "token"}


def test_a_response_without_notifications_is_json(client: PlainHttpClient) -> None:
    for reply in (
        client.session().use("echo", {"text": "hi"}),
        client.post(call("echo", {"text": "hi"})),
        client.use("echo", {"text": "hi"}),
    ):
        assert (reply.status, reply.media_type) == (200, "application/json")
        assert int(reply.headers["Content-Length"]) == len(reply.body())


def test_a_response_with_notifications_is_an_event_stream(client: PlainHttpClient) -> None:
    in_session = client.session().use("test_tool_with_progress", id="s", **PROGRESS_TOKEN)
    alone = client.post(call("test_tool_with_progress", id="s", **PROGRESS_TOKEN))
    stateless = client.use("test_tool_with_progress", id="s", **PROGRESS_TOKEN)
    for reply in (in_session, alone, stateless):
        assert (reply.status, reply.media_type) == (200, "text/event-stream")
        assert reply.headers["X-Accel-Buffering"] == "no"
        assert "no-cache" in reply.headers["Cache-Control"]
        *progress, response = reply.messages()
        assert [message["params"]["progress"] for message in progress] == [0, 50, 100]
        assert {message["params"]["progressToken"] for message in progress} == {"token"}
        assert response["id"] == "s"


def test_log_messages_are_streamed_if_requested(client: PlainHttpClient) -> None:
    assert len(client.session().use("test_tool_with_logging").messages()) == 4
    assert client.use("test_tool_with_logging").media_type == "application/json"
    level: Any = {f"{META}logLevel": "info"}
    assert len(client.use("test_tool_with_logging", **level).messages()) == 4


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        (None, "application/json"),
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("application/*", "application/json"),
        ("APPLICATION/JSON;q=0.5 , text/html", "application/json"),
        ("text/event-stream, application/json", "application/json"),
        ("text/event-stream", "text/event-stream"),
        ("text/*", "text/event-stream"),
        ("text/html", None),
        ("application/jsonp, text/event-streams", None),
        ("application/json-seq", None),
    ],
)
@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_the_response_format_follows_the_accept_header(
    client: PlainHttpClient, accept: str | None, media_type: str | None, era: str
) -> None:
    headers: Pairs = (JSON,) if accept is None else (JSON, ("Accept", accept))
    if era == "handshake":
        reply = client.session().post(request("tools/list", id=4), headers)
    else:
        version = (("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list"))
        meta = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
        reply = client.post(request("tools/list", {"_meta": meta}, id=4), (*headers, *version))
    if media_type is None:
        assert (reply.status, reply.json()["error"]["code"]) == (406, -32600)
    else:
        assert (reply.status, reply.media_type) == (200, media_type)
        assert reply.result()["tools"]


def test_two_accept_headers_are_combined(client: PlainHttpClient) -> None:
    accepts = (("Accept", "text/html"), ("Accept", "application/json"))
    assert client.post(request("ping"), (JSON, *accepts)).status == 200


def test_a_client_that_accepts_only_json_gets_json(client: PlainHttpClient) -> None:
    message = call("test_tool_with_progress", **PROGRESS_TOKEN)
    reply = client.session().post(message, (JSON, ("Accept", "application/json")))
    assert reply.media_type == "application/json"


def test_a_get_must_accept_events(client: PlainHttpClient) -> None:
    session = client.session()
    assert client.send("GET", (("Accept", "application/json"), *session.headers)).status == 406
    assert client.send("GET", (("Accept", "*/*"), *session.headers)).media_type == "text/event-stream"


def test_an_error_is_json_even_if_only_events_are_accepted(client: PlainHttpClient) -> None:
    session = client.session()
    reply = session.post(request("no/such", id=8), (JSON, ("Accept", "text/event-stream")))
    assert reply.error() == (200, -32601, 8)


@pytest.mark.parametrize("size", [0, 1, 1000, 100_000, 5_000_000])
def test_responses_of_any_size_arrive_completely(client: PlainHttpClient, size: int) -> None:
    for reply in (client.session().use("long", {"size": size}), client.use("long", {"size": size})):
        assert len(reply.result()["content"][0]["text"]) == size


def test_a_long_response_arrives_completely_as_an_event(client: PlainHttpClient) -> None:
    only_events: Any = (JSON, ("Accept", "text/event-stream"))
    reply = client.session().post(call("long", {"size": 3_000_000}), only_events)
    assert len(reply.result()["content"][0]["text"]) == 3_000_000


def test_special_characters_cannot_break_out_of_an_event(client: PlainHttpClient) -> None:
    text = "a\r\nb\n\ndata: c\rid: 9\u2028\u2029\x00\U0001f92f"
    reply = client.session().post(call("echo", {"text": text}), (JSON, ("Accept", "text/event-stream")))
    assert reply.result()["content"][0]["text"] == text
