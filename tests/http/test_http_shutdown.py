"""Shutdown: running requests are answered, streams end properly, and the process exits in time."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.http.plain_http_client import META, PlainHttpClient
from tests.http.spawned_server import SpawnedServer

EXIT_SECONDS = 6.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_streams_and_answers_running_requests(number: signal.Signals) -> None:
    with SpawnedServer.fixture() as running, PlainHttpClient(running.port) as client:
        session = client.session()
        stream = session.listen()
        filters = {"notifications": {"toolsListChanged": True}}
        listening = client.ask("subscriptions/listen", filters, id="listen")
        assert listening.message()["method"] == "notifications/subscriptions/acknowledged"
        held = [session.use("hold", id="s", progressToken="t"), client.use("hold", id="n", progressToken="t")]
        for reply in held:
            assert reply.message()["method"] == "notifications/progress"
        running.request_shutdown(number)
        started = time.monotonic()
        [last] = listening.messages()
        assert last["id"] == "listen"
        assert last["result"]["resultType"] == "complete"
        assert last["result"]["_meta"][f"{META}subscriptionId"] == "listen"
        # These calls never end by themselves, so the grace period expires.
        for reply, request_id in zip(held, ("s", "n"), strict=True):
            response = reply.messages()[-1]
            assert (response["id"], response["error"]["code"]) == (request_id, -32603)
            assert "shutting down" in response["error"]["message"]
        assert stream.messages() == []
        assert running.wait_for_exit(EXIT_SECONDS) == 0
        assert time.monotonic() - started < EXIT_SECONDS


def test_a_request_that_ends_in_the_grace_period_is_answered() -> None:
    with SpawnedServer.fixture() as running, PlainHttpClient(running.port) as client:
        replies = [
            client.session().use("test_tool_with_progress", id=1, progressToken="t"),
            client.use("test_tool_with_progress", id=1, progressToken="t"),
        ]
        running.request_shutdown()
        for reply in replies:
            *progress, response = reply.messages()
            assert [message["params"]["progress"] for message in progress] == [0, 50, 100]
            assert response["result"]["content"][0]["text"] == "Progress was reported to 't'"
        assert running.wait_for_exit(EXIT_SECONDS) == 0


def test_new_connections_are_refused_after_the_signal() -> None:
    with SpawnedServer.fixture() as running, PlainHttpClient(running.port) as client:
        held = client.use("hold", progressToken="t")
        assert held.message()["method"] == "notifications/progress"
        running.request_shutdown()
        with pytest.raises(OSError, match=r"refused|reset"):
            try_until(time.monotonic() + EXIT_SECONDS, client)
        assert running.wait_for_exit(EXIT_SECONDS) == 0


def try_until(deadline: float, client: PlainHttpClient) -> None:
    while time.monotonic() < deadline:
        client.use("echo", {"text": "late"}).close()


@pytest.mark.parametrize("profile", ["all", "tasks"])
def test_the_product_exits_with_open_streams(tmp_path: Path, profile: str) -> None:
    with (
        SpawnedServer.product(tmp_path, "--profile", profile) as running,
        PlainHttpClient(running.port) as client,
    ):
        stream = client.session().listen()
        assert stream.status == 200
        started = time.monotonic()
        running.request_shutdown()
        assert stream.messages() == []
        assert running.wait_for_exit(EXIT_SECONDS) == 0
        # No request was running, so there was no grace period.
        assert time.monotonic() - started < EXIT_SECONDS / 2


def test_a_client_that_does_not_read_does_not_delay_the_exit() -> None:
    with SpawnedServer.fixture() as running, PlainHttpClient(running.port) as client:
        # The response does not fit into the socket buffers.
        assert client.session().use("long", {"size": 9_000_000}).status == 200
        running.request_shutdown()
        assert running.wait_for_exit(EXIT_SECONDS) == 0
