"""Bad tokens by the hundred, all with one answer; and a good one, which is found nowhere."""

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
    with World(tmp_path_factory.mktemp("world")) as made:
        yield made


def bad_tokens(good: str) -> Iterator[str]:
    """What somebody might try who has seen one, or none."""
    body = good.removeprefix(PREFIX)
    # One letter is another one: found by the checksum, or not at all.
    for at in range(len(PREFIX), len(good)):
        yield good[:at] + ("x" if good[at] != "x" else "y") + good[at + 1 :]
    # With a checksum that fits.
    chance = random.Random(7)
    for _ in range(60):
        yield token_text(chance.randbytes(32))
    yield token_text(bytes(32))
    yield token_text(b"\xff" * 32)
    # Parts of it, and more than it.
    yield from (good[:length] for length in range(0, len(good), 7) if length)
    yield from (good + more for more in ("A", "=", "==", ".", "%00", "\x00", "\xa0", "/", "?"))
    # In other words.
    yield from (good.upper(), good.lower(), good.swapcase(), good[::-1], body, f"Dittybag_{body}")
    yield from (f"dittybag-{body}", f"dittybag__{body}", f"{PREFIX}{PREFIX}{body}", f"'{good}'", f'"{good}"')
    yield base64.b64encode(good.encode()).decode()
    yield good.encode().hex()
    # What others have.
    yield from ("null", "undefined", "None", "true", "0", "-1", "[object Object]", "admin", "alice", "*")
    yield from ("' OR '1'='1", '" OR 1=1 --', "'; DROP TABLE tokens; --", "%", "_", "..", "../../etc/passwd")
    yield from ("${jndi:ldap://x}", "{{7*7}}", "<script>", "\xff\xfe", "é", "\x7f", "\x01")
    yield "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9."
    yield "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSIsInNjb3BlIjoiYWRtaW4ifQ.AAAA"
    yield "x" * 8192
    yield "x" * 8193
    yield PREFIX + "A" * 8000


def outward(answer: ReceivedResponse) -> tuple[object, ...]:
    """All that a client gets to see, but for the time and the id of the request."""
    names = sorted(name for name in answer.headers if name not in ("date", "x-request-id"))
    return answer.status, [(name, answer.headers[name]) for name in names], answer.body


def test_bad_tokens_are_refused_with_one_answer(world: World) -> None:
    host, good = world.host("all"), world.holders[0].token
    tried = dict.fromkeys(token for token in bad_tokens(good) if token != good)
    assert len(tried) >= 150
    connection = host.connect()
    answers = {}
    for token in tried:
        headers = {"Content-Type": JSON, "Authorization": f"Bearer {token}".encode("latin-1")}
        try:
            answer = send_request(connection, "POST", "/mcp", PING, headers)  # type: ignore[arg-type]
        except ValueError:
            # Not even the client's library sends it.
            continue
        assert answer.status in (400, 401), token
        if answer.status == 401:
            answers[token] = outward(answer)
        if answer.headers.get("connection") == "close" or answer.status == 400:
            # It is no HTTP, and the server hangs up.
            connection.close()
            connection = host.connect()
    assert len(answers) >= 140
    assert len(set(map(str, answers.values()))) == 1
    assert (
        send_request(connection, "POST", "/mcp", PING, {"Content-Type": JSON, **auth_headers(good)}).status
        == 200
    )
    connection.close()


def test_a_typo_is_recognised_without_looking_for_it() -> None:
    chance = random.Random(11)
    for _ in range(200):
        token = token_text(chance.randbytes(32))
        assert is_token(token)
        assert len(token) == len(PREFIX) + 43 + 6
        at = chance.randrange(len(PREFIX), len(token))
        letter = chance.choice("abcXYZ019_-".replace(token[at], ""))
        assert not is_token(token[:at] + letter + token[at + 1 :])
        assert not is_token(token + "\n")


def test_a_token_is_found_neither_in_files_nor_in_what_is_said(tmp_path: Path) -> None:
    """Not in the database, its log, an export, a backup, a listing, the server's log or its answers."""
    dittybag(tmp_path, "user", "add", "alice")
    made = dittybag(tmp_path, "token", "create", "--user", "alice", "--scope", "admin", "--label", "laptop")
    token = made.stdout.strip()
    assert is_token(token)
    assert made.stdout == f"{token}\n"
    said = [made.stderr]
    variables = {"DITTYBAG_HOME": str(tmp_path)}
    with HttpServerProcess("--auth", "tokens", "--access-log", env=variables) as host:
        headers = {"Content-Type": JSON, **auth_headers(token)}
        for body in (PING, PING.replace(b"ping", b"tools/call"), b"{", token.encode()):
            answer = host.ask("POST", "/mcp", body, headers)
            said.append(str(answer))
            said.append(str(host.ask("POST", "/", body, headers)))
        said.append(str(host.ask("GET", "/metrics", None, headers)))
        said.append(host.ask("GET", "/nothing", None, headers).body.decode())
        said.append(host.end()[2])
    for command in (
        ("token", "list", "--all", "--json"),
        ("user", "list", "--json"),
        ("history", "--json"),
        ("doctor", "--json"),
        ("backup", str(tmp_path / "copy.db")),
        ("export", str(tmp_path / "everything.json")),
        ("user", "disable", "alice", "--json"),
    ):
        done = dittybag(tmp_path, *command)
        said += [done.stdout, done.stderr]
    secret = token.removeprefix(PREFIX)[:43]
    for text in said:
        assert secret not in text
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {"default.db", "copy.db", "everything.json"} <= {file.name for file in files}
    for file in files:
        assert secret.encode() not in file.read_bytes(), file
    exported = (tmp_path / "everything.json").read_text()
    assert "alice" not in exported
