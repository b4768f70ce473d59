"""Streams of those who come with a token: what they hear, and when they end."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec
import pytest

from tests.accounts.test_gate import opened
from tests.accounts.world import Somebody, World, headers_of
from tests.contracts.http_server_process import (
    JSON,
    EventStreamReader,
    HttpServerProcess,
    open_event_stream,
    routing_headers,
)
from tests.contracts.library_fixtures import ENVELOPE, ERAS, STATELESS

#: Whatever is revoked is worthless everywhere by then.
SECONDS = 5.0
CHANGED = "notifications/prompts/list_changed"
UPDATED = "notifications/resources/updated"


@pytest.fixture(params=ERAS)
def version(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@contextmanager
def stream_of(
    host: HttpServerProcess, who: Somebody, version: str, uri: str = "file:///notes"
) -> Iterator[EventStreamReader]:
    """What somebody hears who wants to hear of everything."""
    if version != STATELESS:
        session = {"Mcp-Session-Id": opened(host, who), "MCP-Protocol-Version": "2025-11-25"}
        headers = {"Content-Type": JSON, **session, **headers_of(who.token)}
        body = msgspec.json.encode(
            {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": uri}}
        )
        answer = host.ask("POST", "/mcp", body, headers).message()
        assert ("result" in answer) == (who.role is not None)
        with open_event_stream(host, "GET", None, headers) as stream:
            yield stream
        return
    wanted = {"promptsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": [uri]}
    params = {"notifications": wanted, "_meta": ENVELOPE}
    frame = msgspec.json.encode(
        {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    )
    headers = {"Content-Type": JSON, **routing_headers(frame), **headers_of(who.token)}
    with open_event_stream(host, "POST", frame, headers) as stream:
        assert stream.message()["method"] == "notifications/subscriptions/acknowledged"
        yield stream


def heard(stream: EventStreamReader) -> Any:
    return stream.message(SECONDS)["method"]


def is_silent(stream: EventStreamReader, seconds: float = 0.3) -> bool:
    """Whether nothing more comes for a moment."""
    return not select.select([stream._socket], [], [], seconds)[0]


def ends(stream: EventStreamReader) -> None:
    """Whether a stream ends properly and in time, whatever is said before."""
    stream._socket.settimeout(SECONDS)
    while stream._response.readline():
        pass


def test_only_those_hear_of_changes_who_see_the_project(own_world: World, version: str) -> None:
    host = own_world.host("all")
    member = own_world.known[0]
    outsider = next(who for who in own_world.known if who.role is None)
    reader = next(who for who in own_world.known if who.name == "read role")
    with (
        stream_of(host, member, version) as first,
        stream_of(host, reader, version) as second,
        stream_of(host, outsider, version) as third,
    ):
        own_world.new_prompt()
        assert [heard(first), heard(second)] == [CHANGED, CHANGED]
        change = {"name": "notes", "content": "x" * own_world.number()}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        body |= {"params": {"name": "update_resource", "arguments": change}}
        headers = {"Content-Type": JSON, **headers_of(member.token)}
        assert host.ask("POST", "/mcp", msgspec.json.encode(body), headers).status == 200
        for stream in (first, second):
            # The list may have changed too, and be told of first.
            assert UPDATED in (heard(stream), heard(stream))
        assert is_silent(third)


def test_streams_end_when_those_who_listen_are_not_welcome_any_more(own_world: World) -> None:
    host, accounts = own_world.host("all"), own_world.workspace.accounts
    member, other, staying, *_ = own_world.known
    with ExitStack() as stack:
        revoked, outside, others = (
            [stack.enter_context(stream_of(host, who, version)) for version in ERAS]
            for who in (member, other, staying)
        )
        own_world.new_prompt()
        for stream in (*revoked, *outside, *others):
            assert heard(stream) == CHANGED
        tokens, _ = own_world.run(accounts.tokens("alice"))
        own_world.run(accounts.revoke([token.id for token in tokens], actor="tests"))
        own_world.run(accounts.unshare("team", "bob", actor="tests"))
        begun = time.monotonic()
        for stream in (*revoked, *outside):
            ends(stream)
        assert time.monotonic() - begun < SECONDS
        own_world.new_prompt()
        assert [heard(stream) for stream in others] == [CHANGED] * len(ERAS)
