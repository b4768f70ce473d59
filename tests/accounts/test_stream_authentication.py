"""Event streams with tokens: which notifications they carry, and when they end."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec
import pytest

from tests.accounts.accounts_world import TokenHolder, World, auth_headers
from tests.accounts.test_token_authentication import open_session
from tests.contracts.http_server_process import (
    JSON,
    EventStreamReader,
    HttpServerProcess,
    open_event_stream,
    routing_headers,
)
from tests.contracts.library_fixtures import ENVELOPE, ERAS, STATELESS

#: A revoked token stops working within this time.
REVOKED_SECONDS = 5.0
CHANGED = "notifications/prompts/list_changed"
UPDATED = "notifications/resources/updated"


@pytest.fixture(params=ERAS)
def version(request: pytest.FixtureRequest) -> str:
    version: str = request.param
    return version


@contextmanager
def open_stream(
    host: HttpServerProcess, who: TokenHolder, version: str, uri: str = "file:///notes"
) -> Iterator[EventStreamReader]:
    """Open a stream that subscribes to everything."""
    if version != STATELESS:
        session = {"Mcp-Session-Id": open_session(host, who), "MCP-Protocol-Version": "2025-11-25"}
        headers = {"Content-Type": JSON, **session, **auth_headers(who.token)}
        body = msgspec.json.encode(
            {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": uri}}
        )
        response = host.ask("POST", "/mcp", body, headers).message()
        assert ("result" in response) == (who.role is not None)
        with open_event_stream(host, "GET", None, headers) as stream:
            yield stream
        return
    filters = {"promptsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": [uri]}
    params = {"notifications": filters, "_meta": ENVELOPE}
    frame = msgspec.json.encode(
        {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    )
    headers = {"Content-Type": JSON, **routing_headers(frame), **auth_headers(who.token)}
    with open_event_stream(host, "POST", frame, headers) as stream:
        assert stream.message()["method"] == "notifications/subscriptions/acknowledged"
        yield stream


def next_method(stream: EventStreamReader) -> Any:
    return stream.message(REVOKED_SECONDS)["method"]


def is_silent(stream: EventStreamReader, seconds: float = 0.3) -> bool:
    """Return whether nothing is received for some time."""
    return not select.select([stream._socket], [], [], seconds)[0]


def read_to_end(stream: EventStreamReader) -> None:
    """Read a stream to its end. Fails if it does not end properly and in time."""
    stream._socket.settimeout(REVOKED_SECONDS)
    while stream._response.readline():
        pass


def test_only_users_who_see_the_project_are_notified(own_world: World, version: str) -> None:
    host = own_world.host("all")
    member = own_world.holders[0]
    outsider = next(who for who in own_world.holders if who.role is None)
    reader = next(who for who in own_world.holders if who.name == "read role")
    with (
        open_stream(host, member, version) as first,
        open_stream(host, reader, version) as second,
        open_stream(host, outsider, version) as third,
    ):
        own_world.new_prompt()
        assert [next_method(first), next_method(second)] == [CHANGED, CHANGED]
        change = {"name": "notes", "content": "x" * own_world.number()}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        body |= {"params": {"name": "update_resource", "arguments": change}}
        headers = {"Content-Type": JSON, **auth_headers(member.token)}
        assert host.ask("POST", "/mcp", msgspec.json.encode(body), headers).status == 200
        for stream in (first, second):
            # A list change may be notified first.
            assert UPDATED in (next_method(stream), next_method(stream))
        assert is_silent(third)


def test_streams_end_when_access_is_revoked(own_world: World) -> None:
    host, accounts = own_world.host("all"), own_world.workspace.accounts
    member, other, staying, *_ = own_world.holders
    with ExitStack() as stack:
        revoked, outside, others = (
            [stack.enter_context(open_stream(host, who, version)) for version in ERAS]
            for who in (member, other, staying)
        )
        own_world.new_prompt()
        for stream in (*revoked, *outside, *others):
            assert next_method(stream) == CHANGED
        tokens, _ = own_world.run(accounts.tokens("alice"))
        own_world.run(accounts.revoke([token.id for token in tokens], actor="tests"))
        own_world.run(accounts.unshare("team", "bob", actor="tests"))
        started = time.monotonic()
        for stream in (*revoked, *outside):
            read_to_end(stream)
        assert time.monotonic() - started < REVOKED_SECONDS
        own_world.new_prompt()
        assert [next_method(stream) for stream in others] == [CHANGED] * len(ERAS)
