"""Authentication of several users who share a connection, as behind a proxy."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from tests.accounts.accounts_world import TokenHolder, World, word_of
from tests.contracts.http_server_process import HttpServerProcess
from tests.http.raw_connection import RawConnection, post_request

PING = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "ping"})
#: A revoked token stops working within this time.
REVOKED_SECONDS = 5.0


def tool_call(tool: str, **arguments: Any) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


class SharedConnection:
    """A connection that several users share."""

    def __init__(self, host: HttpServerProcess) -> None:
        self.raw = RawConnection(host.address[1])

    def ask(self, who: TokenHolder | None, body: bytes = PING, more: bytes = b"") -> tuple[int, str]:
        line = b"" if who is None else b"Authorization: Bearer %b\r\n" % who.token.encode()
        self.raw.send(post_request(body, line + more))
        response = self.raw.read_response()
        assert response is not None
        return response[0], response[1].decode()

    def ask_repeatedly(self, who: TokenHolder, body: bytes = PING) -> tuple[int, str]:
        """Return the response to the last of four equal requests."""
        for _ in range(3):
            self.ask(who, body)
        return self.ask(who, body)


def test_every_request_is_authenticated(own_world: World) -> None:
    member, other, *_ = own_world.holders
    connection = SharedConnection(own_world.host("all"))
    with connection.raw:
        assert connection.ask_repeatedly(member)[0] == connection.ask_repeatedly(other)[0] == 200
        tokens, _ = own_world.run(own_world.workspace.accounts.tokens("alice"))
        own_world.run(own_world.workspace.accounts.revoke([token.id for token in tokens], actor="tests"))
        deadline = time.monotonic() + REVOKED_SECONDS
        while connection.ask(member)[0] != 401:
            assert time.monotonic() < deadline, "the token is still accepted"
            time.sleep(0.02)
        assert connection.ask(member)[0] == 401
        assert connection.ask(None)[0] == 401
        assert connection.ask(other)[0] == 200


def test_users_of_one_connection_are_not_mixed_up(world: World) -> None:
    connection = SharedConnection(world.host("all"))
    people = [who for who in world.holders if who.scope == "write"]
    with connection.raw:
        for _ in range(4):
            for who in people:
                status, text = connection.ask(who, tool_call("task_search", query="word"))
                assert status == 200
                assert word_of(who.user) in text
                assert not any(word_of(each.user) in text for each in people if each.user != who.user)


def test_permissions_apply_to_every_request(world: World) -> None:
    connection = SharedConnection(world.host("all"))
    with connection.raw:
        for who in world.holders:
            _, text = connection.ask_repeatedly(who, tool_call("get_prompt", id=world.prompt))
            assert ("was deleted" in text) == (who.role is None), who.name
            _, text = connection.ask_repeatedly(who, tool_call("undo_change", change=987654))
            assert ("Unknown tool" in text) == (not who.changes_project), who.name


def test_the_rate_limit_applies_on_one_connection(own_world: World) -> None:
    busy, calm, *_ = own_world.holders
    connection = SharedConnection(own_world.host("all", "--rate-limit", "50/s"))
    with connection.raw:
        statuses = []
        for _ in range(20_000):
            statuses.append(connection.ask(busy)[0])
            if statuses[-1] == 429:
                break
        assert statuses[-1] == 429, "there is no rate limit"
        assert set(statuses[:-1]) == {200}
        assert len(statuses) > 200
        assert connection.ask(calm)[0] == 200
        deadline = time.monotonic() + 2
        while connection.ask(busy)[0] == 429:
            assert time.monotonic() < deadline, "the bucket is not refilled"


def test_every_response_has_its_own_request_id(world: World) -> None:
    connection, who = SharedConnection(world.host("all")), world.holders[1]
    line = b"Authorization: Bearer %b\r\n" % who.token.encode()
    with connection.raw:
        found = []
        for _ in range(6):
            connection.raw.send(post_request(PING, line))
            head = connection.raw.read_head()
            assert head is not None
            found.append(head[1]["x-request-id"])
            connection.raw._read_exactly(int(head[1]["content-length"]))
        assert len(set(found)) == 6
        for _ in range(4):
            connection.raw.send(post_request(PING, line + b"X-Request-Id: mine\r\n"))
            head = connection.raw.read_head()
            assert head is not None
            assert head[1]["x-request-id"] == "mine"
            connection.raw._read_exactly(int(head[1]["content-length"]))
