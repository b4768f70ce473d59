"""Requests that come in one piece under a head that is known: answered at once, and only to those who may."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from tests.accounts.world import Somebody, World, word_of
from tests.contracts.http_server_process import HttpServerProcess
from tests.protocol.transports.http.raw_connection import RawConnection, post_request

PING = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "ping"})
#: Whatever is revoked is worthless everywhere by then.
SECONDS = 5.0


def calling(tool: str, **arguments: Any) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


class Caller:
    """A connection of any number of people."""

    def __init__(self, host: HttpServerProcess) -> None:
        self.raw = RawConnection(host.address[1])

    def ask(self, who: Somebody | None, body: bytes = PING, more: bytes = b"") -> tuple[int, str]:
        line = b"" if who is None else b"Authorization: Bearer %b\r\n" % who.token.encode()
        self.raw.send(post_request(body, line + more))
        answer = self.raw.read_response()
        assert answer is not None
        return answer[0], answer[1].decode()

    def known(self, who: Somebody, body: bytes = PING) -> tuple[int, str]:
        """The answer when the head has come before."""
        for _ in range(3):
            self.ask(who, body)
        return self.ask(who, body)


def test_a_known_head_is_no_pass(own_world: World) -> None:
    member, other, *_ = own_world.known
    caller = Caller(own_world.host("all"))
    with caller.raw:
        assert caller.known(member)[0] == caller.known(other)[0] == 200
        tokens, _ = own_world.run(own_world.workspace.accounts.tokens("alice"))
        own_world.run(own_world.workspace.accounts.revoke([token.id for token in tokens], actor="tests"))
        deadline = time.monotonic() + SECONDS
        while caller.ask(member)[0] != 401:
            assert time.monotonic() < deadline, "it is still good"
            time.sleep(0.02)
        assert caller.ask(member)[0] == 401
        assert caller.ask(None)[0] == 401
        assert caller.ask(other)[0] == 200


def test_everybody_is_who_they_are(world: World) -> None:
    caller = Caller(world.host("all"))
    people = [who for who in world.known if who.scope == "write"]
    with caller.raw:
        for _ in range(4):
            for who in people:
                status, said = caller.ask(who, calling("task_search", query="word"))
                assert status == 200
                assert word_of(who.user) in said
                assert not any(word_of(each.user) in said for each in people if each.user != who.user)


def test_everybody_may_do_what_they_may(world: World) -> None:
    caller = Caller(world.host("all"))
    with caller.raw:
        for who in world.known:
            _, said = caller.known(who, calling("get_prompt", id=world.prompt))
            assert ("was deleted" in said) == (who.role is None), who.name
            _, said = caller.known(who, calling("undo_change", change=987654))
            assert ("Unknown tool" in said) == (not who.changes_project), who.name


def test_a_known_head_is_counted_too(own_world: World) -> None:
    busy, calm, *_ = own_world.known
    caller = Caller(own_world.host("all"))
    with caller.raw:
        statuses = []
        for _ in range(20_000):
            statuses.append(caller.ask(busy)[0])
            if statuses[-1] == 429:
                break
        assert statuses[-1] == 429, "it may ask as often as it likes"
        assert set(statuses[:-1]) == {200}
        assert len(statuses) > 200
        assert caller.ask(calm)[0] == 200


def test_every_answer_has_an_id_of_its_own(world: World) -> None:
    caller, who = Caller(world.host("all")), world.known[1]
    line = b"Authorization: Bearer %b\r\n" % who.token.encode()
    with caller.raw:
        found = []
        for _ in range(6):
            caller.raw.send(post_request(PING, line))
            head = caller.raw.read_head()
            assert head is not None
            found.append(head[1]["x-request-id"])
            caller.raw._read_exactly(int(head[1]["content-length"]))
        assert len(set(found)) == 6
        for _ in range(4):
            caller.raw.send(post_request(PING, line + b"X-Request-Id: mine\r\n"))
            head = caller.raw.read_head()
            assert head is not None
            assert head[1]["x-request-id"] == "mine"
            caller.raw._read_exactly(int(head[1]["content-length"]))
