"""Clients of a fleet are notified of changes on every server, independent of the server of their session."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import msgspec
import pytest

from tests.contracts.http_server_process import EVENTS, EventStreamReader, event_data
from tests.fleet.conftest import USER
from tests.fleet.fleet_clients import ERAS, HANDSHAKE, FleetClient
from tests.fleet.server_fleet import Fleet, FleetServer, wait_until

#: Maximum time until all servers have sent a notification.
NOTIFICATION_SECONDS = 1.0
#: Maximum time until all servers refuse a revoked token.
REVOKED_SECONDS = 5.0

CHANGED = "notifications/prompts/list_changed"
UPDATED = "notifications/resources/updated"


@pytest.fixture
def session(fleet: Fleet, token: str) -> FleetClient:
    """A client with a session that was started on the first server."""
    client = FleetClient(token, HANDSHAKE)
    client.initialize(fleet.servers[0])
    return client


def create_resource(fleet: Fleet, token: str, name: str) -> str:
    """Create a resource. Returns its URI."""
    uri = f"file:///{name}"
    FleetClient(token, ERAS[-1]).call(fleet.servers[0], "create_resource", name=name, uri=uri, content="one")
    return uri


def wait_for_method(stream: EventStreamReader, method: str) -> float:
    """Wait for a notification, and skip others. Returns the time."""
    while stream.message(NOTIFICATION_SECONDS)["method"] != method:
        pass
    return time.monotonic()


def test_a_write_to_one_server_is_notified_by_all_servers_within_a_second(fleet: Fleet, token: str) -> None:
    durations: list[float] = []
    writer = FleetClient(token, ERAS[-1])
    with ExitStack() as stack:
        streams = []
        for server in fleet.servers:
            for era in ERAS:
                client = FleetClient(token, era)
                client.initialize(fleet.proxy)
                streams.append(stack.enter_context(client.listen(server)))
        for number, server in enumerate(fleet.servers * 3):
            started = time.monotonic()
            writer.call(server, "create_prompt", name=f"notified-{number}", content="x")
            with ThreadPoolExecutor(len(streams)) as pool:
                times = pool.map(lambda stream: wait_for_method(stream, CHANGED), streams)
                durations += [at - started for at in times]
    assert max(durations) < NOTIFICATION_SECONDS
    durations.sort()
    print(
        f"\n{len(durations)} notifications, from any server to any: median"
        f" {1000 * durations[len(durations) // 2]:.0f} ms, maximum {1000 * durations[-1]:.0f} ms"
    )


def test_a_subscription_on_one_server_sends_notifications_on_another(
    fleet: Fleet, token: str, session: FleetClient
) -> None:
    stream_at, subscribe_at, write_at = fleet.servers
    uri = create_resource(fleet, token, "watched")
    durations = []
    with session.listen(stream_at) as stream:
        for content in ("two", "three"):
            assert session.request(subscribe_at, "resources/subscribe", {"uri": uri}).status == 200
            started = time.monotonic()
            session.call(write_at, "update_resource", name="watched", content=content)
            durations.append(wait_for_method(stream, UPDATED) - started)
    print(f"\nnotified after {1000 * durations[0]:.0f} ms, and then after {1000 * durations[1]:.0f} ms")


def test_a_session_can_subscribe_to_many_resources_concurrently(
    fleet: Fleet, token: str, session: FleetClient
) -> None:
    uris = [create_resource(fleet, token, f"many-{number}") for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        responses = pool.map(
            lambda uri: session.request(fleet.proxy, "resources/subscribe", {"uri": uri}), uris
        )
        assert {response.status for response in responses} == {200}
    notified: set[str] = set()
    with session.listen(fleet.servers[0]) as stream:
        for number in range(12):
            session.call(fleet.proxy, "update_resource", name=f"many-{number}", content="two")
        while notified != set(uris):
            message = stream.message(NOTIFICATION_SECONDS)
            notified |= {message["params"]["uri"]} if message["method"] == UPDATED else set()


def test_a_client_that_reconnects_to_another_server_is_notified_of_everything_it_may_have_missed(
    fleet: Fleet, token: str, session: FleetClient
) -> None:
    first, second, third = fleet.servers
    uri = create_resource(fleet, token, "moved")
    assert session.request(first, "resources/subscribe", {"uri": uri}).status == 200
    with session.listen(first) as stream:
        for number in range(3):
            session.call(second, "create_prompt", name=f"before-{number}", content="x")
            last = next_event_id(stream)
    # A write while the client is disconnected.
    session.call(third, "update_resource", name="moved", content="two")
    with session.listen(second, last_event_id=last) as stream:
        notified = [stream.message(NOTIFICATION_SECONDS)["method"] for _ in range(4)]
        lists = [f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")]
        assert sorted(notified) == sorted([*lists, UPDATED])
        session.call(third, "create_prompt", name="after", content="x")
        wait_for_method(stream, CHANGED)


def next_event_id(stream: EventStreamReader) -> str:
    """The id of the next event that contains a message."""
    event = ""
    while not event_data(event):
        line = stream._response.readline().decode()
        assert line, "the stream has ended"
        event = line if event.endswith("\n\n") else event + line
    (event_id,) = [line.removeprefix("id: ") for line in event.splitlines() if line.startswith("id: ")]
    return event_id


def test_a_response_stream_of_one_server_cannot_be_resumed_on_another(
    fleet: Fleet, session: FleetClient
) -> None:
    first, second, _ = fleet.servers
    # Both servers answered one request of the session with a stream, so the stream numbers are the same.
    responses = [session.request(server, "ping", {}, accept=EVENTS) for server in (first, second)]
    last, other = (
        re.findall(rb"^id: (.+)$", response.body, re.MULTILINE)[-1].decode() for response in responses
    )
    assert last.split("-")[:2] == other.split("-")[:2]
    with session.listen(second, last_event_id=other) as stream:
        assert stream._response.readline().startswith(b"id: ")
    with (
        pytest.raises(AssertionError, match="is no longer known"),
        session.listen(second, last_event_id=last),
    ):
        pass


def test_a_revoked_token_is_refused_by_every_server_within_5_seconds(fleet: Fleet) -> None:
    client = FleetClient(fleet.token(USER, "--label", "revoked"), ERAS[-1])
    for server in fleet.servers:
        assert client.request(server, "tools/list", {}).status == 200
    (number,) = [
        token["id"]
        for token in msgspec.json.decode(fleet.command("token", "list", "--json"))["data"]["tokens"]
        if token["label"] == "revoked"
    ]
    started = time.monotonic()
    fleet.command("token", "revoke", str(number))

    def time_until_refused(server: FleetServer) -> float:
        wait_until(
            lambda: client.request(server, "tools/list", {}).status == 401, f"{server.url} refuses the token"
        )
        return time.monotonic() - started

    with ThreadPoolExecutor(len(fleet.servers)) as pool:
        durations = list(pool.map(time_until_refused, fleet.servers))
    assert max(durations) < REVOKED_SECONDS
    print(f"\nrefused after {', '.join(f'{duration:.2f}' for duration in durations)} s")
