"""Sessions of the handshake revisions: start, end, and requests without a session."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from tests.http.plain_http_client import (
    BOTH,
    EVENTS,
    JSON,
    STATELESS,
    Pairs,
    PlainHttpClient,
    call,
    notification,
    request,
)

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
OTHER_METHODS = ("PUT", "PATCH", "OPTIONS", "HEAD", "TRACE")

PING = request("ping", id="p")
PONG = {"jsonrpc": "2.0", "id": "p", "result": {}}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_handshake_opens_a_session_with_the_requested_version(
    client: PlainHttpClient, version: str
) -> None:
    reply = client.initialize(version)
    assert (reply.status, reply.media_type) == (200, "application/json")
    assert re.fullmatch(r"[\x21-\x7e]{32,}", reply.headers["Mcp-Session-Id"])
    response = reply.json()
    assert (response["id"], response["result"]["protocolVersion"]) == ("hello", version)


def test_each_handshake_opens_another_session(client: PlainHttpClient) -> None:
    ids = {client.initialize().headers["Mcp-Session-Id"] for _ in range(20)}
    assert len(ids) == 20


def test_a_handshake_that_fails_opens_no_session(client: PlainHttpClient) -> None:
    reply = client.post(request("initialize", id=True))
    assert reply.status == 400
    assert "Mcp-Session-Id" not in reply.headers


def test_a_session_is_not_found_after_delete(client: PlainHttpClient) -> None:
    session = client.session()
    other = client.session()
    assert session.post(PING).json() == PONG
    assert session.delete().status == 204
    assert session.post(PING).status == 404
    assert session.post(notification("notifications/initialized")).status == 404
    assert session.listen().status == 404
    assert session.delete().status == 404
    assert other.post(PING).json() == PONG


def test_delete_ends_the_streams_of_the_session(client: PlainHttpClient) -> None:
    session = client.session()
    stream = session.listen()
    held = session.use("hold", id=5, progressToken="t")
    assert held.message()["method"] == "notifications/progress"
    assert session.delete().status == 204
    assert stream.messages() == []
    [last] = held.messages()
    assert (last["id"], last["error"]["code"]) == (5, -32603)
    assert client.counts(held=0)["held"] == 0


@pytest.mark.parametrize("session_id", ["nope", "", "0" * 32, "\xe9", "a" * 5000])
def test_an_unknown_session_is_not_found(client: PlainHttpClient, session_id: str) -> None:
    header = ("Mcp-Session-Id", session_id.encode("latin-1"))
    for reply in (
        client.post(PING, (JSON, BOTH, header)),
        client.send("GET", (EVENTS, header)),
        client.send("DELETE", (header,)),
    ):
        assert (reply.status, reply.json()["error"]["code"]) == (404, -32600)


@pytest.mark.parametrize(
    "headers", [[("Mcp-Session-Id", "nope")], [("MCP-Protocol-Version", "1900-01-01")]], ids=str
)
def test_an_error_response_has_the_id_of_its_request(client: PlainHttpClient, headers: Pairs) -> None:
    assert client.post(PING, (JSON, BOTH, *headers)).json()["id"] == "p"


@pytest.mark.parametrize("version", ["1900-01-01", "2025-11-26", "latest", "", "2025-11-25, 2025-11-25"])
def test_an_unsupported_version_header_is_a_bad_request(client: PlainHttpClient, version: str) -> None:
    session = client.session()
    wrong = (("Mcp-Session-Id", session.id), ("MCP-Protocol-Version", version))
    assert client.post(PING, (JSON, BOTH, *wrong)).status == 400
    assert client.post(notification("notifications/initialized"), (JSON, BOTH, *wrong)).status == 400
    assert client.send("GET", (EVENTS, *wrong)).status == 400
    assert client.post(PING, (JSON, BOTH, ("MCP-Protocol-Version", version))).status == 400


@pytest.mark.parametrize("version", [None, *VERSIONS])
def test_requests_are_answered_without_a_session(client: PlainHttpClient, version: str | None) -> None:
    more = () if version is None else (("MCP-Protocol-Version", version),)
    reply = client.post(call("echo", {"text": "alone"}), (JSON, BOTH, *more))
    assert reply.status == 200
    assert "Mcp-Session-Id" not in reply.headers
    assert reply.json()["result"]["content"][0]["text"] == "alone"


@pytest.mark.parametrize(
    "message",
    [
        notification("notifications/initialized"),
        notification("notifications/cancelled", {"requestId": 99}),
        notification("no/such"),
        {"jsonrpc": "2.0", "id": 7, "result": {}},
        {"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "no"}},
    ],
    ids=str,
)
@pytest.mark.parametrize("in_session", [True, False])
def test_notifications_and_responses_are_accepted_without_a_body(
    client: PlainHttpClient, message: Any, in_session: bool
) -> None:
    reply = client.session().post(message) if in_session else client.post(message)
    assert (reply.status, reply.body()) == (202, b"")


@pytest.mark.parametrize(
    ("body", "code", "id"),
    [
        (b"", -32700, None),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":NaN}', -32700, 3),
        (b"1", -32600, None),
        (b'{"jsonrpc":"2.0","id":3}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b"[]", -32600, None),
        (msgspec.json.encode([PING]), -32600, None),
    ],
    ids=lambda value: str(value)[:60],
)
def test_an_invalid_request_is_a_bad_request_with_its_id(
    client: PlainHttpClient, body: bytes, code: int, id: Any
) -> None:
    reply = client.session().post(body)
    assert reply.status == 400
    response = reply.json()
    assert (response["error"]["code"], response.get("id")) == (code, id)


def test_other_errors_have_status_200(client: PlainHttpClient) -> None:
    session = client.session()
    assert session.post(request("no/such", id="x")).error() == (200, -32601, "x")
    assert session.post(request("tools/call", {"name": "no_such"}, id="x")).error() == (200, -32602, "x")
    assert session.post(request("resources/read", {"uri": "test://no"}, id="x")).error() == (200, -32002, "x")


def test_batches_are_answered_in_one_array_in_the_revision_that_supports_them(
    client: PlainHttpClient,
) -> None:
    session = client.session("2025-03-26")
    batch = [
        call("echo", {"text": "one"}, id=1),
        notification("notifications/cancelled", {"requestId": 99}),
        request("no/such", id=2),
        call("echo", {"text": "three"}, id="3"),
    ]
    reply = session.post(batch)
    assert reply.status == 200
    responses = {response["id"]: response for response in reply.json()}
    assert set(responses) == {1, 2, "3"}
    assert responses[1]["result"]["content"][0]["text"] == "one"
    assert responses[2]["error"]["code"] == -32601
    assert responses["3"]["result"]["content"][0]["text"] == "three"
    no_requests = [notification("notifications/initialized"), {"jsonrpc": "2.0", "id": 1, "result": {}}]
    reply = session.post(no_requests)
    assert (reply.status, reply.body()) == (202, b"")
    assert session.post([]).status == 400


def test_a_handshake_cannot_be_part_of_a_batch(client: PlainHttpClient) -> None:
    reply = client.post([client_hello(), PING])
    assert "Mcp-Session-Id" not in reply.headers
    responses = {response["id"]: response for response in reply.json()}
    assert responses["hello"]["error"]["code"] == -32600
    assert responses["p"]["result"] == {}


def client_hello() -> dict[str, Any]:
    params = {
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "clientInfo": {"name": "b", "version": "1"},
    }
    return request("initialize", params, id="hello")


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_batches_are_refused_in_other_revisions(client: PlainHttpClient, version: str) -> None:
    assert client.session(version).post([PING]).status == 400


@pytest.mark.parametrize("method", OTHER_METHODS)
@pytest.mark.parametrize("version", [None, "2025-11-25", STATELESS])
def test_other_methods_are_not_allowed(client: PlainHttpClient, method: str, version: str | None) -> None:
    headers = () if version is None else (("MCP-Protocol-Version", version),)
    reply = client.send(method, headers)
    assert reply.status == 405
    assert set(reply.headers["Allow"].split(", ")) == {"POST", "GET", "DELETE"}
    assert "Access-Control-Allow-Origin" not in reply.headers


def test_get_and_delete_need_a_session(client: PlainHttpClient) -> None:
    assert client.send("GET", (EVENTS,)).status == 405
    assert client.send("DELETE").status == 405


def test_sessions_may_use_the_same_request_id_concurrently(client: PlainHttpClient) -> None:
    first, second = client.session(), client.session()
    held = [session.use("hold", id=1, progressToken="t") for session in (first, second)]
    assert all(reply.message()["method"] == "notifications/progress" for reply in held)
    assert first.use("echo", {"text": "again"}, id=1).error() == (400, -32600, 1)
    assert client.use("release").status == 200
    for reply in held:
        assert reply.messages()[-1]["result"]["content"][0]["text"] == "released"
