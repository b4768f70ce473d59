"""The end: what is under way is answered, streams end properly, and the process ends in time."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.protocol.transports.http.client import META, Client
from tests.protocol.transports.http.runner import Running

END_SECONDS = 6.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_streams_properly_and_answers_what_is_under_way(number: signal.Signals) -> None:
    with Running.fixture() as running, Client(running.port) as client:
        session = client.session()
        stream = session.listen()
        wanted = {"notifications": {"toolsListChanged": True}}
        listening = client.ask("subscriptions/listen", wanted, id="listen")
        assert listening.message()["method"] == "notifications/subscriptions/acknowledged"
        held = [session.use("hold", id="s", progressToken="t"), client.use("hold", id="n", progressToken="t")]
        for reply in held:
            assert reply.message()["method"] == "notifications/progress"
        running.ask_to_end(number)
        begun = time.monotonic()
        [last] = listening.messages()
        assert last["id"] == "listen"
        assert last["result"]["resultType"] == "complete"
        assert last["result"]["_meta"][f"{META}subscriptionId"] == "listen"
        # They never end by themselves, so their time runs out.
        for reply, request_id in zip(held, ("s", "n"), strict=True):
            answer = reply.messages()[-1]
            assert (answer["id"], answer["error"]["code"]) == (request_id, -32603)
            assert "shutting down" in answer["error"]["message"]
        assert stream.messages() == []
        assert running.ended(END_SECONDS) == 0
        assert time.monotonic() - begun < END_SECONDS


def test_a_request_that_ends_in_time_is_answered_in_full() -> None:
    with Running.fixture() as running, Client(running.port) as client:
        replies = [
            client.session().use("test_tool_with_progress", id=1, progressToken="t"),
            client.use("test_tool_with_progress", id=1, progressToken="t"),
        ]
        running.ask_to_end()
        for reply in replies:
            *progress, answer = reply.messages()
            assert [one["params"]["progress"] for one in progress] == [0, 50, 100]
            assert answer["result"]["content"][0]["text"] == "Progress was reported to 't'"
        assert running.ended(END_SECONDS) == 0


def test_nobody_gets_in_after_the_signal() -> None:
    with Running.fixture() as running, Client(running.port) as client:
        held = client.use("hold", progressToken="t")
        assert held.message()["method"] == "notifications/progress"
        running.ask_to_end()
        with pytest.raises(OSError, match=r"refused|reset"):
            try_until(time.monotonic() + END_SECONDS, client)
        assert running.ended(END_SECONDS) == 0


def try_until(deadline: float, client: Client) -> None:
    while time.monotonic() < deadline:
        client.use("echo", {"text": "late"}).close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_exit_status_is_that_of_a_success(tmp_path: Path, number: signal.Signals) -> None:
    with Running.product(tmp_path) as running:
        running.ask_to_end(number)
        assert running.ended(END_SECONDS) == 0


@pytest.mark.parametrize("profile", ["all", "tasks"])
def test_the_product_ends_with_its_streams(tmp_path: Path, profile: str) -> None:
    with Running.product(tmp_path, "--profile", profile) as running, Client(running.port) as client:
        stream = client.session().listen()
        assert stream.status == 200
        begun = time.monotonic()
        running.ask_to_end()
        assert stream.messages() == []
        assert running.ended(END_SECONDS) == 0
        # Nothing was under way: there was nothing to wait for.
        assert time.monotonic() - begun < END_SECONDS / 2


def test_who_does_not_read_does_not_hold_up_the_end() -> None:
    with Running.fixture() as running, Client(running.port) as client:
        # The answer does not fit into the buffers on the way.
        assert client.session().use("long", {"size": 9_000_000}).status == 200
        running.ask_to_end()
        assert running.ended(END_SECONDS) == 0
