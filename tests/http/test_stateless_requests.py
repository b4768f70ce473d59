"""Stateless requests: routing headers, HTTP statuses, `subscriptions/listen` and disconnects."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.http.plain_http_client import (
    BOTH,
    EVENTS,
    JSON,
    META,
    STATELESS,
    Pairs,
    PlainHttpClient,
    request,
    routing,
    stateless,
)
from tests.http.spawned_server import SpawnedServer

ECHO = stateless("tools/call", {"name": "echo", "arguments": {"text": "hi"}}, id="e")
VERSION, METHOD, NAME = "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"
VALID = {VERSION: STATELESS, METHOD: "tools/call", NAME: "echo"}


def base64_value(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    return f"=?base64?{base64.b64encode(raw).decode()}?="


def headers_with(**changes: str | bytes | None) -> Pairs:
    """Return the valid headers with changes. The keywords are the names of the constants above."""
    values = {**VALID, **{globals()[name]: value for name, value in changes.items()}}
    return [(name, value) for name, value in values.items() if value is not None]


HEADERS: list[tuple[str, Pairs, bool]] = [
    ("all valid", headers_with(), True),
    ("no version", headers_with(VERSION=None), False),
    ("no method", headers_with(METHOD=None), False),
    ("no name", headers_with(NAME=None), False),
    ("no headers", [], False),
    ("another stateless version", headers_with(VERSION="2026-07-29"), False),
    ("a handshake version", headers_with(VERSION="2025-11-25"), False),
    ("another method", headers_with(METHOD="tools/list"), False),
    ("another name", headers_with(NAME="long"), False),
    ("a method in another case", headers_with(METHOD="Tools/Call"), False),
    ("a name in another case", headers_with(NAME="Echo"), False),
    ("an empty version", headers_with(VERSION=""), False),
    ("an empty method", headers_with(METHOD=""), False),
    ("an empty name", headers_with(NAME=""), False),
    ("spaces around", headers_with(VERSION=f"  {STATELESS} ", METHOD="\ttools/call ", NAME=" echo\t"), True),
    ("spaces inside", headers_with(METHOD="tools /call"), False),
    ("header names in lower case", [(name.lower(), value) for name, value in VALID.items()], True),
    ("header names in upper case", [(name.upper(), value) for name, value in VALID.items()], True),
    ("the same name twice", [*headers_with(), (NAME, "echo")], True),
    ("another name after it", [*headers_with(), (NAME, "long")], False),
    ("another name before it", [(NAME, "long"), *headers_with()], False),
    ("another method after it", [*headers_with(), (METHOD, "tools/list")], False),
    ("another version after it", [*headers_with(), (VERSION, "2025-11-25")], False),
    ("two values in one list", headers_with(METHOD="tools/call, tools/call"), False),
    ("a name in Base64", headers_with(NAME=base64_value("echo")), True),
    ("another name in Base64", headers_with(NAME=base64_value("long")), False),
    ("Base64 of the wrong length", headers_with(NAME="=?base64?ZWNobw?="), False),
    ("Base64 with other characters", headers_with(NAME="=?base64?ZWN_obw==?="), False),
    ("Base64 that is not UTF-8", headers_with(NAME=base64_value(b"\xff\xfe")), False),
    ("empty Base64", headers_with(NAME="=?base64??="), False),
    ("Base64 without an end", headers_with(NAME="=?base64?ZWNobw=="), False),
    ("Base64 with another marker", headers_with(NAME="=?BASE64?ZWNobw==?="), False),
    ("Base64 of Base64", headers_with(NAME=base64_value(base64_value("echo"))), False),
    ("bytes that are not ASCII", headers_with(NAME=b"echo\xe9"), False),
]


@pytest.mark.parametrize(("case", "headers", "matches"), HEADERS, ids=[case for case, _, _ in HEADERS])
def test_headers_must_match_the_body(
    client: PlainHttpClient, case: str, headers: Pairs, matches: bool
) -> None:
    reply = client.post(ECHO, (JSON, BOTH, *headers))
    if matches:
        assert reply.result()["content"][0]["text"] == "hi"
    else:
        assert reply.error() == (400, -32020, "e")


def test_non_ascii_names_are_sent_in_base64(client: PlainHttpClient) -> None:
    for uri in ("test://template/é/data", "test://template/=?base64?x?=/data"):
        message = stateless("resources/read", {"uri": uri}, id=1)
        named = [pair for pair in routing(message) if pair[0] != NAME]
        assert client.post(message, (JSON, BOTH, *named, (NAME, base64_value(uri)))).status == 200
    message = stateless("resources/read", {"uri": "test://static-text"})
    assert client.post(message, (JSON, BOTH, *routing(message))).status == 200


@pytest.mark.parametrize(
    ("value", "matches"),
    [("eu", True), (base64_value("eu"), True), (" eu ", True), ("us", False), (None, False)],
)
def test_mirrored_arguments_must_match_their_headers(
    client: PlainHttpClient, region_tool: str, value: str | None, matches: bool
) -> None:
    message = stateless("tools/call", {"name": region_tool, "arguments": {"region": "eu"}}, id="e")
    more = [] if value is None else [("Mcp-Param-Region", value)]
    reply = client.post(message, (JSON, BOTH, *routing(message), *more))
    if matches:
        assert reply.status == 200
    else:
        assert reply.error() == (400, -32020, "e")


@pytest.fixture
def region_tool(client: PlainHttpClient) -> str:
    """The tool of the fixture that mirrors an argument in a header."""
    for tool in client.ask("tools/list").result()["tools"]:
        if "x-mcp-header" in str(tool["inputSchema"]):
            return str(tool["name"])
    raise AssertionError("the fixture has no tool with a mirrored argument")


def with_meta(meta: Any, method: str = "tools/list") -> dict[str, Any]:
    return request(method, {"_meta": meta}, id=7)


FULL = {f"{META}protocolVersion": STATELESS, f"{META}clientCapabilities": {}}
LISTED: Pairs = [(VERSION, STATELESS), (METHOD, "tools/list")]
TWICE: Pairs = [(VERSION, STATELESS), (METHOD, "a"), (METHOD, "b")]
OLD = {**FULL, f"{META}protocolVersion": "1900-01-01"}
ODD: Any = {**FULL, f"{META}protocolVersion": 2026}

#: Each request has the mistake of its row and of the rows below, which shows the order of the checks.
ORDER: list[tuple[str, bytes | dict[str, Any], Pairs, tuple[int, int, Any]]] = [
    ("not JSON", b'{"id":7,', [(METHOD, "a"), (METHOD, "b")], (400, -32700, None)),
    ("an array", b'[{"id":7}]', TWICE, (400, -32600, None)),
    ("duplicate headers", with_meta({}), TWICE, (400, -32020, 7)),
    ("no _meta", request("no/such", id=7), [(VERSION, STATELESS), (METHOD, "x")], (400, -32602, 7)),
    ("no version", with_meta({f"{META}clientCapabilities": {}}), LISTED, (400, -32602, 7)),
    ("no capabilities", with_meta({f"{META}protocolVersion": "1900-01-01"}), LISTED, (400, -32602, 7)),
    ("a version that is not a string", with_meta(ODD), LISTED, (400, -32602, 7)),
    ("headers", with_meta(OLD, "no/such"), LISTED, (400, -32020, 7)),
    ("version", with_meta(OLD, "no/such"), [(VERSION, "1900-01-01"), (METHOD, "no/such")], (400, -32022, 7)),
    ("method", with_meta(FULL, "no/such"), [(VERSION, STATELESS), (METHOD, "no/such")], (404, -32601, 7)),
]


@pytest.mark.parametrize(
    ("body", "headers", "expected"), [row[1:] for row in ORDER], ids=[row[0] for row in ORDER]
)
def test_mistakes_are_reported_in_this_order(
    client: PlainHttpClient, body: Any, headers: Pairs, expected: Any
) -> None:
    assert client.post(body, (JSON, BOTH, *headers)).error() == expected


def test_an_unsupported_version_error_lists_the_supported_ones(client: PlainHttpClient) -> None:
    response = client.ask("tools/list", version="1900-01-01").json()
    assert response["error"]["data"] == {"supported": [STATELESS], "requested": "1900-01-01"}


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "x"]
)
def test_unknown_methods_are_not_found(client: PlainHttpClient, method: str) -> None:
    assert client.ask(method, id="gone").error() == (404, -32601, "gone")


def test_other_errors_have_status_200_or_400(client: PlainHttpClient) -> None:
    assert client.use("no_such", id="x").error() == (200, -32602, "x")
    assert client.ask("resources/read", {"uri": "test://no"}, id="x").error() == (200, -32602, "x")
    assert client.use("test_missing_capability", id="x").error() == (400, -32021, "x")


@pytest.mark.parametrize("id", [0, -1, 2**53, "", "é\u2028", "x" * 1024])
def test_ids_are_returned_unchanged_in_results_and_errors(client: PlainHttpClient, id: Any) -> None:
    assert client.use("echo", {"text": "hi"}, id=id).json()["id"] == id
    assert client.use("no_such", id=id).json()["id"] == id
    assert client.ask("no/such", id=id).json()["id"] == id
    assert client.post(stateless("tools/list", id=id), (JSON, BOTH)).json()["id"] == id


def test_an_id_without_a_method_is_answered(client: PlainHttpClient) -> None:
    message = stateless("x", id=5)
    del message["method"]
    assert client.post(message, (JSON, BOTH, (VERSION, STATELESS))).error() == (400, -32600, 5)


def test_there_are_no_sessions_and_no_resumable_streams(client: PlainHttpClient) -> None:
    old = [("Mcp-Session-Id", "nope"), ("Last-Event-ID", "1-1")]
    reply = client.ask("tools/list", headers=old)
    assert (reply.status, reply.headers["Mcp-Session-Id"]) == (200, None)
    named = [(VERSION, STATELESS)]
    for headers in (named, [*named, ("Mcp-Session-Id", client.session().id)]):
        assert client.send("GET", (EVENTS, *headers)).status == 405
        assert client.send("DELETE", headers).status == 405
    events = client.use("test_tool_with_progress", progressToken="t")
    while (event := events.event()) is not None:
        assert event.id is None
        assert event.data


def test_notifications_are_accepted(client: PlainHttpClient) -> None:
    message = stateless("notifications/cancelled", {"requestId": 1})
    del message["id"]
    reply = client.post(message, (JSON, BOTH, *routing(message)))
    assert (reply.status, reply.body()) == (202, b"")


def test_a_disconnect_cancels_the_request(client: PlainHttpClient) -> None:
    before = cancelled_count(client, 0)
    reply = client.use("wait_until_cancelled", id="w", progressToken="t")
    assert reply.message()["method"] == "notifications/progress"
    reply.close()
    assert cancelled_count(client, before + 1) == before + 1


def cancelled_count(client: PlainHttpClient, at_least: int) -> int:
    result = client.use("cancelled_count", {"at_least": at_least}).result()
    return int(result["structuredContent"]["cancelled"])


ALL_LISTS = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


def test_listening_acknowledges_the_subscriptions_and_sends_only_those(client: PlainHttpClient) -> None:
    uri = "test://watched-resource"
    expected = {"promptsListChanged": True, "resourceSubscriptions": [uri]}
    some = client.ask("subscriptions/listen", {"notifications": expected}, id=6)
    every = client.ask("subscriptions/listen", {"notifications": ALL_LISTS}, id="six")
    for reply, request_id, honoured in ((some, 6, expected), (every, "six", ALL_LISTS)):
        assert (reply.status, reply.media_type) == (200, "text/event-stream")
        assert reply.headers["X-Accel-Buffering"] == "no"
        first = reply.message()
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"] == {"_meta": {f"{META}subscriptionId": request_id}, "notifications": honoured}
    for tool in ("tool_change", "resource_update", "prompt_change"):
        assert client.use(f"test_trigger_{tool}").status == 200
    received = [some.message() for _ in range(2)]
    assert [message["method"] for message in received] == [
        "notifications/resources/updated",
        "notifications/prompts/list_changed",
    ]
    assert received[0]["params"]["uri"] == uri
    assert all(message["params"]["_meta"] == {f"{META}subscriptionId": 6} for message in received)
    assert [every.message()["method"] for _ in range(2)] == [
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
    ]


def test_a_closed_listener_is_removed(client: PlainHttpClient) -> None:
    before = client.counts(streams=0)
    replies = [
        client.ask("subscriptions/listen", {"notifications": ALL_LISTS}, id=number) for number in range(20)
    ]
    assert client.counts(streams=20)["streams"] == 20
    for reply in replies:
        reply.close()
    expected = {"streams": 0, "audience": before["audience"]}
    assert client.counts(**expected) == {**before, **expected}


def test_streams_beyond_the_limit_are_refused_until_another_ends() -> None:
    with SpawnedServer.fixture(limits={"streams": 3}) as running, PlainHttpClient(running.port) as client:
        session = client.session()
        streams = [session.listen() for _ in range(3)]
        assert client.counts(streams=3)["streams"] == 3
        refused = session.listen()
        assert refused.status == 503
        assert int(refused.headers["Retry-After"]) > 0
        streams[0].close()
        assert client.counts(streams=2)["streams"] == 2
        assert session.listen().status == 200


def test_a_refused_listener_gets_an_error_with_its_id_and_leaves_nothing() -> None:
    with SpawnedServer.fixture(limits={"streams": 1}) as running, PlainHttpClient(running.port) as client:
        listening = client.ask("subscriptions/listen", {"notifications": ALL_LISTS})
        assert client.counts(streams=1, audience=1)["audience"] == 1
        for number in range(3):
            refused = client.ask("subscriptions/listen", {"notifications": ALL_LISTS}, id=number)
            assert (refused.status, refused.json()["id"]) == (503, number)
        # Calls still work.
        assert client.use("echo", {"text": "hi"}).status == 200
        listening.close()
        assert client.counts(streams=0, audience=0) == {"streams": 0, "sessions": 0, "audience": 0, "held": 0}
