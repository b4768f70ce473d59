"""OAuth users on a running server."""

from __future__ import annotations

import http.client
import re
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dittybag.assembly.http_setup import serve_http
from dittybag.config import settings
from dittybag.identity.token_verifier import OAuthVerifier
from tests.cli.cli_runner import dittybag
from tests.e2e.web_server_process import WebServerProcess
from tests.http.spawned_server import SpawnedServer
from tests.identity.jwt_builder import AUDIENCE, ISSUER, Key, good_claims, rsa_key
from tests.web.browser_client import BrowserClient, HasPort

METADATA = "https://dittybag.example.com/.well-known/oauth-protected-resource/mcp"


def claims(**changes: Any) -> dict[str, Any]:
    """Return the claims of a token that is valid now."""
    now = int(time.time())
    return good_claims(iat=now - 10, exp=now + 600, **changes)


@pytest.fixture(scope="module")
def key() -> Key:
    return rsa_key("one")


@pytest.fixture
def issuer(tmp_path: Path, key: Key) -> dict[str, str]:
    """The settings of the issuer, as environment variables."""
    keys = tmp_path / "keys.json"
    keys.write_bytes(msgspec.json.encode({"keys": [key.jwk]}))
    return {
        "DITTYBAG_OAUTH_ISSUER": ISSUER,
        "DITTYBAG_OAUTH_AUDIENCE": AUDIENCE,
        "DITTYBAG_OAUTH_JWKS": str(keys),
    }


@pytest.fixture
def served(tmp_path: Path, issuer: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> SpawnedServer:
    for name, value in issuer.items():
        monkeypatch.setenv(name, value)
    return SpawnedServer.product(tmp_path / "home", "--auth", "tokens")


def post_call(
    running: HasPort, token: str | None, tool: str | None = None, **arguments: Any
) -> tuple[int, http.client.HTTPMessage, Any]:
    """Call a tool, or list the tools. Return the status, the headers and the response."""
    params: dict[str, Any] = {} if tool is None else {"name": tool, "arguments": arguments}
    method = "tools/list" if tool is None else "tools/call"
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
    try:
        connection.request("POST", "/mcp", body, headers)
        reply = connection.getresponse()
        return reply.status, reply.headers, msgspec.json.decode(reply.read())
    finally:
        connection.close()


def tool_names(response: Any) -> set[str]:
    return {tool["name"] for tool in response["result"]["tools"]}


def test_oauth_users_have_their_own_tasks_and_scopes(tmp_path: Path, served: SpawnedServer, key: Key) -> None:
    with served as running:
        status, _, response = post_call(running, key.token(claims()))
        assert status == 200
        assert "task_create" in tool_names(response)
        status, _, response = post_call(running, key.token(claims(sub="bob", scope="dittybag:read")))
        assert status == 200
        assert "task_create" not in tool_names(response)
        # Each user has separate tasks and is named in the change log.
        assert post_call(running, key.token(claims()), "task_create", title="Ann's")[0] == 200
        listed = post_call(running, key.token(claims()), "task_list")[2]
        assert "Ann's" in msgspec.json.encode(listed).decode()
        other = post_call(running, key.token(claims(sub="bob")), "task_list")[2]
        assert "Ann's" not in msgspec.json.encode(other).decode()
        history = dittybag(tmp_path / "home", "history", "--kind", "task", "--json").stdout
        assert '"actor":"ann' in history
        # Dittybag's own tokens still work, and a user who is disabled here is refused.
        dittybag(tmp_path / "home", "user", "add", "eve")
        own = dittybag(
            tmp_path / "home", "token", "create", "--user", "eve", "--scope", "read"
        ).stdout.strip()
        assert post_call(running, own)[0] == 200
        assert post_call(running, key.token(claims(sub="eve")))[0] == 200
        dittybag(tmp_path / "home", "user", "disable", "eve")
        deadline = time.monotonic() + 5
        while post_call(running, key.token(claims(sub="eve")))[0] == 200:
            assert time.monotonic() < deadline


def test_clients_without_a_valid_token_get_the_metadata_url(served: SpawnedServer, key: Key) -> None:
    with served as running:
        status, headers, _ = post_call(running, None)
        assert (status, headers["WWW-Authenticate"]) == (401, f'Bearer resource_metadata="{METADATA}"')
        for bad in (key.token(claims(aud="https://elsewhere.example.com")), "not-a-token", key.token()[:-5]):
            status, headers, _ = post_call(running, bad)
            assert status == 401
            assert headers["WWW-Authenticate"] == (
                f'Bearer error="invalid_token", resource_metadata="{METADATA}"'
            )
        status, headers, _ = post_call(running, key.token(claims(scope="openid")))
        assert status == 403
        assert 'error="insufficient_scope", scope="dittybag:read' in headers["WWW-Authenticate"]
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
        for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
            connection.request("GET", path)
            reply = connection.getresponse()
            metadata = msgspec.json.decode(reply.read())
            assert reply.status == 200
            assert (metadata["resource"], metadata["authorization_servers"]) == (AUDIENCE, [ISSUER])
        connection.close()


def test_an_oauth_token_signs_in_to_the_web_ui(tmp_path: Path, served: SpawnedServer, key: Key) -> None:
    with served as running:
        assert BrowserClient(running).post("/sign-in", {"token": "not-a-token"}).status == 403
        assert post_call(running, key.token(claims()), "task_create", title="Ann's")[0] == 200
        ann = BrowserClient.sign_in_with_token(running, key.token(claims()))
        assert "Ann&#x27;s" in ann.get("/p/default/tasks").text
        bob = BrowserClient.sign_in_with_token(running, key.token(claims(sub="bob", scope="dittybag:read")))
        assert "Ann&#x27;s" not in bob.get("/p/default/tasks").text
        change = bob.request("POST", "/p/default/tasks", b"", {"X-Form-Secret": bob.secret})
        assert change.status == 403
        # A user who is disabled here is refused.
        dittybag(tmp_path / "home", "user", "add", "ann")
        dittybag(tmp_path / "home", "user", "disable", "ann")
        deadline = time.monotonic() + 5
        while ann.get("/p/default/tasks").status == 200:
            assert time.monotonic() < deadline


def test_invalid_oauth_settings_are_reported(tmp_path: Path) -> None:
    serve = ("serve", "--http", "127.0.0.1:0", "--auth", "tokens")
    half = dittybag(tmp_path, *serve, status=2, variables={"DITTYBAG_OAUTH_ISSUER": ISSUER})
    assert "DITTYBAG_OAUTH_AUDIENCE" in half.stderr
    wrong = {"DITTYBAG_OAUTH_ISSUER": "http://far.example.com", "DITTYBAG_OAUTH_AUDIENCE": AUDIENCE}
    assert "OAuth" in dittybag(tmp_path, *serve, status=2, variables=wrong).stderr


def test_the_log_says_why_a_token_is_refused(tmp_path: Path, issuer: dict[str, str], key: Key) -> None:
    now = int(time.time())
    refused = {
        "not a signed JWT in compact form": "not-a-token",
        "wrong audience (aud)": key.token(claims(aud="https://elsewhere.example.com")),
        "expired": key.token(claims() | {"exp": now - 3600}),
        "not signed by a key of the issuer": rsa_key("two").token(claims()),
        "it has none of the required scopes": key.token(claims(scope="openid")),
        "its user is disabled": key.token(claims(sub="eve")),
    }
    with WebServerProcess(tmp_path / "home", "--auth", "tokens", variables=issuer) as server:
        dittybag(server.home, "user", "add", "eve")
        dittybag(server.home, "user", "disable", "eve")
        for reason, token in refused.items():
            assert post_call(server, token)[0] in (401, 403)
            server.wait_for(rf"an OAuth token was refused: ({re.escape(reason)})")
        for _ in range(50):
            assert post_call(server, "not-a-token")[0] == 401
            assert BrowserClient(server).post("/sign-in", {"token": "not-a-token"}).status == 403
        assert post_call(server, key.token(claims()))[0] == 200
    for reason, token in refused.items():
        assert server.log.count(f"refused: {reason}") == 1
        assert token not in server.log


def test_the_key_fetcher_is_closed_if_serving_ends_with_an_exception(
    tmp_path: Path, issuer: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []
    close = OAuthVerifier.close

    async def record(self: OAuthVerifier) -> None:
        closed.append(self)
        await close(self)

    def fail(port: int) -> None:
        raise RuntimeError("the address cannot be printed")

    monkeypatch.setattr(OAuthVerifier, "close", record)
    environment = {"DITTYBAG_HOME": str(tmp_path / "home"), **issuer}
    with pytest.raises(RuntimeError, match="the address cannot be printed"):
        serve_http(settings(environment, http="127.0.0.1:0", auth="tokens"), fail, lambda port, key: None)
    assert len(closed) == 1
