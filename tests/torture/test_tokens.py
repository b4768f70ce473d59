"""Every invalid token gets the same response, and a valid token appears in no output or file."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from dittybag.domain.accounts import PREFIX, is_token, token_text
from tests.accounts.accounts_world import World, auth_headers
from tests.cli.cli_runner import dittybag
from tests.contracts.http_server_process import JSON, HttpServerProcess, ReceivedResponse, send_request

PING = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "ping"})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with World(tmp_path_factory.mktemp("world")) as world:
        yield world


def bad_tokens(good: str) -> Iterator[str]:
    """Yield tokens that an attacker might try, with or without knowing a valid one."""
    body = good.removeprefix(PREFIX)
    # One changed character.
    for at in range(len(PREFIX), len(good)):
        yield good[:at] + ("x" if good[at] != "x" else "y") + good[at + 1 :]
    # With a valid checksum.
    rng = random.Random(7)
    for _ in range(60):
        yield token_text(rng.randbytes(32))
    yield token_text(bytes(32))
    yield token_text(b"\xff" * 32)
    # Truncated and extended.
    yield from (good[:length] for length in range(0, len(good), 7) if length)
    yield from (good + more for more in ("A", "=", "==", ".", "%00", "\x00", "\xa0", "/", "?"))
    # In another form.
    yield from (good.upper(), good.lower(), good.swapcase(), good[::-1], body, f"Dittybag_{body}")
    yield from (f"dittybag-{body}", f"dittybag__{body}", f"{PREFIX}{PREFIX}{body}", f"'{good}'", f'"{good}"')
    yield base64.b64encode(good.encode()).decode()
    yield good.encode().hex()
    # Common placeholders, injections and tokens of other systems.
    yield from ("null", "undefined", "None", "true", "0", "-1", "[object Object]", "admin", "alice", "*")
    yield from ("' OR '1'='1", '" OR 1=1 --', "'; DROP TABLE tokens; --", "%", "_", "..", "../../etc/passwd")
    yield from ("${jndi:ldap://x}", "{{7*7}}", "<script>", "\xff\xfe", "é", "\x7f", "\x01")
    yield "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9."
    yield "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSIsInNjb3BlIjoiYWRtaW4ifQ.AAAA"
    yield "x" * 8192
    yield "x" * 8193
    yield PREFIX + "A" * 8000


def visible_parts(response: ReceivedResponse) -> tuple[object, ...]:
    """Return everything that a client sees, except the date and the request id."""
    names = sorted(name for name in response.headers if name not in ("date", "x-request-id"))
    return response.status, [(name, response.headers[name]) for name in names], response.body


def test_all_invalid_tokens_get_the_same_response(world: World) -> None:
    host, good = world.host("all"), world.holders[0].token
    tried = dict.fromkeys(token for token in bad_tokens(good) if token != good)
    assert len(tried) >= 150
    connection = host.connect()
    responses = {}
    for token in tried:
        headers = {"Content-Type": JSON, "Authorization": f"Bearer {token}".encode("latin-1")}
        try:
            response = send_request(connection, "POST", "/mcp", PING, headers)  # type: ignore[arg-type]
        except ValueError:
            # The HTTP library refuses to send it.
            continue
        assert response.status in (400, 401), token
        if response.status == 401:
            responses[token] = visible_parts(response)
        if response.headers.get("connection") == "close" or response.status == 400:
            # It is not valid HTTP, and the server closes the connection.
            connection.close()
            connection = host.connect()
    assert len(responses) >= 140
    assert len(set(map(str, responses.values()))) == 1
    assert (
        send_request(connection, "POST", "/mcp", PING, {"Content-Type": JSON, **auth_headers(good)}).status
        == 200
    )
    connection.close()


def test_the_checksum_detects_a_typo() -> None:
    rng = random.Random(11)
    for _ in range(200):
        token = token_text(rng.randbytes(32))
        assert is_token(token)
        assert len(token) == len(PREFIX) + 43 + 6
        at = rng.randrange(len(PREFIX), len(token))
        letter = rng.choice("abcXYZ019_-".replace(token[at], ""))
        assert not is_token(token[:at] + letter + token[at + 1 :])
        assert not is_token(token + "\n")


def test_a_token_appears_in_no_file_and_no_output(tmp_path: Path) -> None:
    """Checks the database, its log, an export, a backup, listings, the server's log and its responses."""
    dittybag(tmp_path, "user", "add", "alice")
    created = dittybag(
        tmp_path, "token", "create", "--user", "alice", "--scope", "admin", "--label", "laptop"
    )
    token = created.stdout.strip()
    assert is_token(token)
    assert created.stdout == f"{token}\n"
    outputs = [created.stderr]
    variables = {"DITTYBAG_HOME": str(tmp_path)}
    with HttpServerProcess("--auth", "tokens", "--access-log", env=variables) as host:
        headers = {"Content-Type": JSON, **auth_headers(token)}
        for body in (PING, PING.replace(b"ping", b"tools/call"), b"{", token.encode()):
            response = host.ask("POST", "/mcp", body, headers)
            outputs.append(str(response))
            outputs.append(str(host.ask("POST", "/", body, headers)))
        outputs.append(str(host.ask("GET", "/metrics", None, headers)))
        outputs.append(host.ask("GET", "/nothing", None, headers).body.decode())
        outputs.append(host.end()[2])
    for command in (
        ("token", "list", "--include-revoked", "--json"),
        ("user", "list", "--json"),
        ("history", "--json"),
        ("doctor", "--json"),
        ("backup", "create", str(tmp_path / "copy.db")),
        ("export", str(tmp_path / "everything.json")),
        ("user", "disable", "alice", "--json"),
    ):
        done = dittybag(tmp_path, *command)
        outputs += [done.stdout, done.stderr]
    secret = token.removeprefix(PREFIX)[:43]
    for text in outputs:
        assert secret not in text
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {"default.db", "copy.db", "everything.json"} <= {file.name for file in files}
    for file in files:
        assert secret.encode() not in file.read_bytes(), file
    exported = (tmp_path / "everything.json").read_text()
    assert "alice" not in exported
