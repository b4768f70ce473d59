"""How answers are brought: as JSON where there is only an answer, as events where there is more."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.transports.http.client import BOTH, JSON, META, Client, Pairs, call, request

WANTS_PROGRESS: Any = {"progressToken": "token"}


def test_an_answer_alone_is_json(client: Client) -> None:
    for reply in (
        client.session().use("echo", {"text": "hi"}),
        client.post(call("echo", {"text": "hi"})),
        client.use("echo", {"text": "hi"}),
    ):
        assert (reply.status, reply.kind) == (200, "application/json")
        assert int(reply.headers["Content-Length"]) == len(reply.body())


def test_notifications_make_it_a_stream_that_ends_with_the_answer(client: Client) -> None:
    in_session = client.session().use("test_tool_with_progress", id="s", **WANTS_PROGRESS)
    alone = client.post(call("test_tool_with_progress", id="s", **WANTS_PROGRESS))
    stateless = client.use("test_tool_with_progress", id="s", **WANTS_PROGRESS)
    for reply in (in_session, alone, stateless):
        assert (reply.status, reply.kind) == (200, "text/event-stream")
        assert reply.headers["X-Accel-Buffering"] == "no"
        assert "no-cache" in reply.headers["Cache-Control"]
        *progress, answer = reply.messages()
        assert [one["params"]["progress"] for one in progress] == [0, 50, 100]
        assert {one["params"]["progressToken"] for one in progress} == {"token"}
        assert answer["id"] == "s"


def test_without_a_wish_for_progress_the_same_call_is_json(client: Client) -> None:
    assert client.session().use("test_tool_with_progress").kind == "application/json"
    assert client.use("test_tool_with_progress").kind == "application/json"


def test_log_messages_come_in_a_stream_where_they_are_wanted(client: Client) -> None:
    assert len(client.session().use("test_tool_with_logging").messages()) == 4
    assert client.use("test_tool_with_logging").kind == "application/json"
    level: Any = {f"{META}logLevel": "info"}
    assert len(client.use("test_tool_with_logging", **level).messages()) == 4


@pytest.mark.parametrize(
    ("accept", "kind"),
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
def test_answers_are_of_a_kind_that_the_client_takes(
    client: Client, accept: str | None, kind: str | None, era: str
) -> None:
    headers: Pairs = (JSON,) if accept is None else (JSON, ("Accept", accept))
    if era == "handshake":
        reply = client.session().post(request("tools/list", id=4), headers)
    else:
        named = (("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list"))
        about = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
        reply = client.post(request("tools/list", {"_meta": about}, id=4), (*headers, *named))
    if kind is None:
        assert (reply.status, reply.json()["error"]["code"]) == (406, -32600)
    else:
        assert (reply.status, reply.kind) == (200, kind)
        assert reply.result()["tools"]


def test_two_accept_headers_are_one_list(client: Client) -> None:
    accepts = (("Accept", "text/html"), ("Accept", "application/json"))
    assert client.post(request("ping"), (JSON, *accepts)).status == 200


def test_who_takes_only_json_gets_only_json(client: Client) -> None:
    message = call("test_tool_with_progress", **WANTS_PROGRESS)
    reply = client.session().post(message, (JSON, ("Accept", "application/json")))
    assert reply.kind == "application/json"


def test_a_get_takes_events_or_nothing(client: Client) -> None:
    session = client.session()
    assert client.send("GET", (("Accept", "application/json"), *session.headers)).status == 406
    assert client.send("GET", (("Accept", "*/*"), *session.headers)).kind == "text/event-stream"


def test_an_error_is_json_even_for_who_wants_events(client: Client) -> None:
    session = client.session()
    reply = session.post(request("no/such", id=8), (JSON, ("Accept", "text/event-stream")))
    assert reply.error() == (200, -32601, 8)


@pytest.mark.parametrize("size", [0, 1, 1000, 100_000, 5_000_000])
def test_answers_of_any_size_arrive_whole(client: Client, size: int) -> None:
    for reply in (client.session().use("long", {"size": size}), client.use("long", {"size": size})):
        assert len(reply.result()["content"][0]["text"]) == size


def test_a_long_answer_arrives_whole_as_an_event(client: Client) -> None:
    only_events: Any = (JSON, ("Accept", "text/event-stream"))
    reply = client.session().post(call("long", {"size": 3_000_000}), only_events)
    assert len(reply.result()["content"][0]["text"]) == 3_000_000


def test_text_of_any_kind_stays_inside_its_event(client: Client) -> None:
    text = "a\r\nb\n\ndata: c\rid: 9\u2028\u2029\x00\U0001f92f"
    reply = client.session().post(call("echo", {"text": text}), (JSON, ("Accept", "text/event-stream")))
    assert reply.result()["content"][0]["text"] == text


def test_a_connection_serves_one_request_after_the_other(client: Client) -> None:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=10)
    for number in range(50):
        body = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % number
        connection.request("POST", "/mcp", body, dict([JSON, BOTH]))
        assert connection.getresponse().read() == b'{"jsonrpc":"2.0","id":%d,"result":{}}' % number
    connection.close()
