"""The sessions of one user are limited, and do not end those of another."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPConnection

import msgspec
import pytest

from dittybag.domain.accounts import Scope
from dittybag.http.stored_sessions import MAX_SESSIONS as MAX_MCP_SESSIONS
from dittybag.web.web_sessions import MAX_SESSIONS as MAX_WEB_SESSIONS
from tests.accounts.accounts_world import World, auth_headers
from tests.contracts.http_server_process import BOTH, JSON, HttpServerProcess, send_request
from tests.web.browser_client import BrowserClient

INITIALIZE = msgspec.json.encode(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"},
        },
    }
)
PING = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "ping"})
#: The requests that one token may send in a burst.
BURST = 200


@pytest.fixture(params=["sqlite", "postgres"])
def shared_world(request: pytest.FixtureRequest) -> World:
    world: World = request.getfixturevalue("own_world" if request.param == "sqlite" else "rls_world")
    return world


@pytest.fixture
def host(shared_world: World) -> HttpServerProcess:
    return shared_world.host("all")


def new_tokens(world: World, user: str, scope: Scope, count: int) -> Iterator[str]:
    for _ in range(count):
        yield world.run(world.workspace.accounts.create_token(user, scope, actor="tests")).text


def initialize(connection: HTTPConnection, token: str) -> str:
    headers = {"Content-Type": JSON, "Accept": BOTH, **auth_headers(token)}
    response = send_request(connection, "POST", "/mcp", INITIALIZE, headers)
    assert response.status == 200
    return response.headers["mcp-session-id"]


def ping_status(connection: HTTPConnection, token: str, session: str) -> int:
    headers = {"Content-Type": JSON, "Accept": BOTH, "Mcp-Session-Id": session, **auth_headers(token)}
    return send_request(connection, "POST", "/mcp", PING, headers).status


def test_a_user_who_opens_many_sessions_ends_only_their_own_oldest(
    shared_world: World, host: HttpServerProcess
) -> None:
    [mine] = new_tokens(shared_world, "alice", "write", 1)
    needed = -(-(MAX_MCP_SESSIONS + 1) // BURST)
    tokens = list(new_tokens(shared_world, "mallory", "read", needed + 1))
    browser = BrowserClient.sign_in_with_token(host, mine)
    other_browser = BrowserClient.sign_in_with_token(host, tokens[0])
    connection = host.connect()
    session = initialize(connection, mine)
    opened = [initialize(connection, token) for token in tokens[:needed] for _ in range(BURST)][
        : MAX_MCP_SESSIONS + BURST
    ]
    oldest, newest = opened[: len(opened) - MAX_MCP_SESSIONS], opened[-MAX_MCP_SESSIONS:]
    probe = tokens[-1]
    assert {ping_status(connection, probe, each) for each in oldest[:20]} == {404}
    assert {ping_status(connection, probe, each) for each in (newest[0], newest[-1])} == {200}
    # Nothing of anybody else has ended, and nothing of another kind.
    assert ping_status(connection, mine, session) == 200
    for visitor in (browser, other_browser):
        assert visitor.get("/").headers["location"] != "/sign-in"
    connection.close()


def test_a_user_who_signs_in_many_times_ends_only_their_own_oldest_web_session(
    shared_world: World, host: HttpServerProcess
) -> None:
    [mine] = new_tokens(shared_world, "alice", "write", 1)
    [theirs] = new_tokens(shared_world, "bob", "read", 1)
    connection = host.connect()
    session = initialize(connection, theirs)
    browser = BrowserClient.sign_in_with_token(host, mine)
    signed_in = [BrowserClient.sign_in_with_token(host, theirs) for _ in range(MAX_WEB_SESSIONS + 1)]
    assert signed_in[0].get("/").headers["location"] == "/sign-in"
    for visitor in (signed_in[1], signed_in[-1], browser):
        assert visitor.get("/").headers["location"] != "/sign-in"
    assert ping_status(connection, theirs, session) == 200
    connection.close()
