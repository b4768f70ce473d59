"""Token authentication: accepted headers, revocation, request ids and sessions."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from http.client import HTTPConnection
from typing import Any

import msgspec
import pytest

from dittybag.domain.queries import ChangeQuery
from tests.accounts.accounts_world import OWNER, Json, TokenHolder, World, auth_headers
from tests.contracts.http_server_process import (
    BOTH,
    JSON,
    NO_HEADERS,
    HttpServerProcess,
    ReceivedResponse,
    send_request,
)

PING = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "ping"})
#: A revoked token stops working within this time.
REVOKED_SECONDS = 5.0


def post(
    connection: HTTPConnection,
    token: str | None,
    body: bytes = PING,
    *,
    more: Mapping[str, str] = NO_HEADERS,
) -> ReceivedResponse:
    headers = {"Content-Type": JSON, "Accept": BOTH, **auth_headers(token), **more}
    return send_request(connection, "POST", "/mcp", body, headers)


def call(connection: HTTPConnection, token: str, tool: str, **arguments: Any) -> Json:
    params = {"name": tool, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    response: Json = post(connection, token, msgspec.json.encode(body)).json()["result"]
    return response


def content(result: Json) -> Any:
    return msgspec.json.decode(result["content"][0]["text"])


def wait_until_refused(connection: HTTPConnection, token: str) -> None:
    """Repeat a request until the token is refused."""
    deadline = time.monotonic() + REVOKED_SECONDS
    while (response := post(connection, token)).status != 401:
        assert response.status == 200
        assert time.monotonic() < deadline, "the token is still accepted"
        time.sleep(0.02)
    assert response.headers["www-authenticate"] == 'Bearer realm="dittybag", error="invalid_token"'


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ({}, False),
        ({"Authorization": ""}, False),
        ({"Authorization": "Basic YWxpY2U6eA=="}, False),
        ({"Authorization": "TOKEN"}, False),
        ({"X-Authorization": "Bearer TOKEN"}, False),
        ({"Cookie": "Authorization=Bearer TOKEN"}, False),
        ({"Authorization": "Bearer"}, True),
        ({"Authorization": "Bearer "}, True),
        ({"Authorization": "Bearer  TOKEN"}, True),
        ({"Authorization": "Bearer TOKEN x"}, True),
        ({"Authorization": "Bearer TOKEN,"}, True),
        ({"Authorization": 'Bearer "TOKEN"'}, True),
        ({"Authorization": "Bearer Bearer TOKEN"}, True),
        ({"Authorization": "Bearer token"}, True),
    ],
)
def test_a_token_is_accepted_only_as_bearer_header(
    world: World, headers: dict[str, str], error: bool
) -> None:
    token = world.holders[0].token
    given = {name: value.replace("TOKEN", token) for name, value in headers.items()}
    host = world.host("all")
    for path in ("/mcp", f"/mcp?access_token={token}"):
        response = host.ask("POST", path, PING, {"Content-Type": JSON, **given})
        assert response.status == 401
        assert ("invalid_token" in response.headers["www-authenticate"]) == error
        assert token not in str(response)
    assert (
        host.ask("POST", "/mcp", PING, {"Content-Type": JSON, "Authorization": f"bearer {token}"}).status
        == 200
    )


def test_two_tokens_are_refused(world: World) -> None:
    connection = world.host("all").connect()
    connection.putrequest("POST", "/mcp")
    for who in world.holders[:2]:
        connection.putheader("Authorization", f"Bearer {who.token}")
    connection.putheader("Content-Type", JSON)
    connection.putheader("Content-Length", str(len(PING)))
    connection.endheaders(PING)
    assert connection.getresponse().status == 401
    connection.close()


def test_the_change_log_names_the_user_and_the_client(world: World) -> None:
    host, who = world.host("all"), world.holders[0]
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "Cursor\n2", "version": "1"},
    }
    params = {"name": "task_create", "arguments": {"title": "Mine"}, "_meta": meta}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    routed = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "task_create"}
    connection = host.connect()
    assert post(connection, who.token, body, more=routed).status == 200
    connection.close()
    assert (
        world.run(world.workspace.history.page(OWNER, ChangeQuery(limit=1)))[0].actor == "alice via Cursor 2"
    )


# Revoked tokens, disabled users, removed members


def test_revoking_and_disabling_take_effect_on_every_server_within_seconds(own_world: World) -> None:
    hosts = [own_world.host("all"), own_world.host("mcpkg")]
    member, other, *_ = own_world.holders
    connections = [host.connect() for host in hosts]
    for connection in connections:
        for who in (member, other):
            # Several times on one connection.
            assert [post(connection, who.token).status for _ in range(3)] == [200] * 3
    tokens, _ = own_world.run(own_world.workspace.accounts.tokens("alice"))
    mine = [token.id for token in tokens if token.hint == member.token[-4:]]
    own_world.run(own_world.workspace.accounts.revoke(mine, actor="tests"))
    for connection in connections:
        wait_until_refused(connection, member.token)
    own_world.run(own_world.workspace.accounts.disable("bob", actor="tests"))
    for connection in connections:
        wait_until_refused(connection, other.token)
        assert post(connection, own_world.holders[2].token).status == 200
        connection.close()


def test_a_removed_member_loses_access_within_seconds(own_world: World) -> None:
    connection, who = own_world.host("all").connect(), own_world.holders[0]
    assert call(connection, who.token, "get_prompt", id=own_world.prompt)["isError"] is False
    own_world.run(own_world.workspace.accounts.unshare("team", "alice", actor="tests"))
    deadline = time.monotonic() + REVOKED_SECONDS
    while call(connection, who.token, "get_prompt", id=own_world.prompt)["isError"] is False:
        assert time.monotonic() < deadline, "the prompt is still visible"
        time.sleep(0.02)
    own_world.run(own_world.workspace.accounts.share("team", "alice", "read", actor="tests"))
    deadline = time.monotonic() + REVOKED_SECONDS
    while call(connection, who.token, "get_prompt", id=own_world.prompt)["isError"]:
        assert time.monotonic() < deadline, "the prompt is not visible again"
        time.sleep(0.02)
    listed = post(connection, who.token, PING.replace(b"ping", b"tools/list")).json()["result"]["tools"]
    assert "create_prompt" not in {tool["name"] for tool in listed}
    connection.close()


def test_the_last_use_of_a_token_is_recorded(own_world: World) -> None:
    connection, who = own_world.host("all").connect(), own_world.holders[0]
    assert post(connection, who.token).status == 200
    deadline = time.monotonic() + REVOKED_SECONDS
    while True:
        tokens, _ = own_world.run(own_world.workspace.accounts.tokens("alice"))
        used = {token.hint for token in tokens if token.used_at is not None}
        if used:
            break
        assert time.monotonic() < deadline
    assert used == {who.token[-4:]}
    connection.close()


# Request ids


def test_every_response_has_a_new_request_id_or_that_of_the_request(world: World) -> None:
    connection, who = world.host("all").connect(), world.holders[0]
    created = [post(connection, who.token).headers["x-request-id"] for _ in range(10)]
    created += [post(connection, None).headers["x-request-id"] for _ in range(3)]
    assert len(set(created)) == len(created)
    assert all(re.fullmatch(r"[0-9a-f]{12}-[0-9a-f]+", name) for name in created)
    for valid in ("a", "A-z_0.9", "x" * 64):
        for _ in range(3):
            response = post(connection, who.token, more={"X-Request-Id": valid})
            assert response.headers.get_all("x-request-id") == [valid]
    for invalid in ("", "x" * 65, "a b", "a\tb", "ä", "a,b", "<x>"):
        (named,) = (
            post(connection, who.token, more={"X-Request-Id": invalid}).headers.get_all("x-request-id") or []
        )
        assert re.fullmatch(r"[0-9a-f]{12}-[0-9a-f]+", named), invalid
    connection.close()


def test_the_access_log_has_request_and_user_but_no_token(own_world: World) -> None:
    host = own_world.host("all", "--access-log")
    connection = host.connect()
    member = own_world.holders[0]
    post(connection, member.token, more={"X-Request-Id": "mine-1"})
    post(connection, own_world.invalid_tokens["revoked"], more={"X-Request-Id": "mine-2"})
    send_request(connection, "GET", "/metrics", None, auth_headers(member.token))
    send_request(connection, "GET", f"/mcp?access_token={member.token}", None, {})
    connection.close()
    _, _, err = host.end()
    lines = [msgspec.json.decode(line) for line in err.splitlines() if line.startswith("{")]
    found = [(line["request_id"], line["user"], line["path"], line["status"]) for line in lines]
    assert found[:2] == [("mine-1", "alice", "/mcp", 200), ("mine-2", "", "/mcp", 401)]
    assert [line[1:] for line in found[2:]] == [("alice", "/metrics", 403), ("", "/mcp", 401)]
    for token in (member.token, own_world.invalid_tokens["revoked"]):
        assert str(token) not in err


# Sessions


def open_session(host: HttpServerProcess, who: TokenHolder) -> str:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    connection = host.connect()
    response = post(connection, who.token, msgspec.json.encode(body))
    connection.close()
    assert response.status == 200
    return str(response.headers["mcp-session-id"])


def test_a_session_of_another_user_is_not_found(world: World) -> None:
    host = world.host("all")
    member, other, *_ = world.holders
    session = open_session(host, member)
    read_only = next(who for who in world.holders if who.name == "read scope")

    def responses(who: TokenHolder, name: str) -> list[tuple[int, bytes]]:
        headers = {
            "Content-Type": JSON,
            "Accept": BOTH,
            "Mcp-Session-Id": name,
            "MCP-Protocol-Version": "2025-11-25",
            **auth_headers(who.token),
        }
        found = [
            host.ask("POST", "/mcp", PING, headers),
            host.ask("GET", "/mcp", None, headers),
            host.ask("DELETE", "/mcp", None, headers),
        ]
        return [(response.status, response.body) for response in found]

    foreign, missing = responses(other, session), responses(other, "0" * 32)
    assert foreign == missing
    assert [status for status, _ in foreign] == [404] * 3
    headers = {"Content-Type": JSON, "Accept": BOTH, "Mcp-Session-Id": session}
    for who in (member, read_only):
        # It works with every token of its user.
        assert host.ask("POST", "/mcp", PING, {**headers, **auth_headers(who.token)}).status == 200
    assert host.ask("DELETE", "/mcp", None, {**headers, **auth_headers(member.token)}).status == 204
