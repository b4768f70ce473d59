"""Waiting for a task: it is woken within a second, and a call that is given up claims nothing."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import msgspec
import pytest

from tests.contracts.agent_calls import AgentCalls
from tests.contracts.contract_replay import (
    VARIANTS,
    ServerVariant,
    StartServer,
    WorkspaceLocation,
    database,
)
from tests.contracts.http_server_process import HttpServerProcess
from tests.contracts.task_clients import (
    MAX_SECONDS,
    StdioTaskClient,
    on_http,
    on_stdio,
    open_session,
    structured,
    tool_request,
    waiting_over_http,
)
from tests.repetitions import repetitions


@pytest.fixture(params=VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> ServerVariant:
    chosen: ServerVariant = request.param
    return chosen


@pytest.fixture
def clients(location: WorkspaceLocation) -> Iterator[tuple[StdioTaskClient, StdioTaskClient]]:
    with StdioTaskClient(location) as first, StdioTaskClient(location) as second:
        yield first, second


def test_a_wait_is_over_when_nothing_becomes_ready(serve: StartServer) -> None:
    agent = AgentCalls(serve("agent"))
    answer = agent.data("task_next", wait="1s")
    assert answer["task"] is None
    assert answer["note"].startswith("No task became ready within 1s; ")


def test_another_process_wakes_a_wait_within_a_second(serve: StartServer) -> None:
    waiter, planner = AgentCalls(serve("agent")), AgentCalls(serve("agent"))
    planner.data("task_add", tasks=[{"title": "A", "key": "a"}, {"title": "B", "blocked_by": ["a"]}])
    fence = planner.data("task_next")["fence"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waiter.data, "task_next", wait="1m")
        assert not waiting.done()
        planner.data("task_done", ref="task:1", fence=fence, comment="Built")
        start = time.monotonic()
        claimed = waiting.result(10)
        assert time.monotonic() - start < MAX_SECONDS
    assert claimed["task"]["title"] == "B"
    (before,) = claimed["done_before"]
    assert (before["title"], before["status"], before["comments"][0]["text"]) == ("A", "done", "Built")


@on_stdio
def test_each_of_several_waiting_clients_gets_another_task(location: WorkspaceLocation) -> None:
    with ExitStack() as stack:
        waiters = [stack.enter_context(StdioTaskClient(location)) for _ in range(4)]
        waiting = [client.start_waiting() for client in waiters]
        planner = stack.enter_context(StdioTaskClient(location))
        planner.data("task_add", tasks=[{"title": title} for title in "ABCD"])
        answers = [client.response(number) for client, number in zip(waiters, waiting, strict=True)]
        assert sorted(structured(answer)["task"]["title"] for answer in answers) == ["A", "B", "C", "D"]


@on_stdio
def test_other_calls_of_the_connection_go_on_meanwhile(
    clients: tuple[StdioTaskClient, StdioTaskClient],
) -> None:
    client, _ = clients
    waiting = client.start_waiting(labels=["urgent"])
    assert client.data("task_add", tasks=[{"title": "A"}])["added"]
    assert client.data("task_list")["total"] == 1
    client.data("task_update", ref="task:1", labels=["urgent"])
    assert structured(client.response(waiting, MAX_SECONDS))["task"]["labels"] == ["urgent"]


@on_stdio
def test_a_cancelled_wait_claims_nothing(clients: tuple[StdioTaskClient, StdioTaskClient]) -> None:
    client, other = clients
    client.cancel(client.start_waiting())
    assert client.data("task_list")["total"] == 0
    other.data("task_add", tasks=[{"title": "A"}])
    assert other.data("task_next")["task"]["title"] == "A"
    assert client.data("task_list")["tasks"][0]["holder"] == "test"


@on_stdio
def test_a_wait_that_is_cancelled_while_it_claims_claims_nothing(
    clients: tuple[StdioTaskClient, StdioTaskClient],
) -> None:
    client, other = clients
    for number in range(repetitions(10, 200)):
        waiting = client.start_waiting()
        added = client.send("task_add", tasks=[{"title": str(number)}])
        client.cancel(waiting)
        answers = client.responses_until(added)
        # Either the response came first, or the call was cancelled and the task is free.
        holder = client if waiting in answers else other
        claim = answers[waiting] if waiting in answers else other.response(other.send("task_next", wait="5s"))
        assert structured(claim)["task"]["title"] == str(number)
        holder.data("task_done", ref=f"task:{number + 1}", fence=structured(claim)["fence"])


@on_stdio
@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGKILL"])
def test_a_wait_of_a_connection_that_ends_claims_nothing(
    clients: tuple[StdioTaskClient, StdioTaskClient], how: str
) -> None:
    client, other = clients
    waiting = client.start_waiting()
    start = time.monotonic()
    if how == "end of input":
        client.wire.hang_up()
    else:
        client.wire.process.send_signal(signal.Signals[how])
    lines, errors, status = client.wire.rest()
    assert time.monotonic() - start < MAX_SECONDS
    if how != "SIGKILL":
        (response,) = map(msgspec.json.decode, lines)
        assert (response["id"], response["error"]["message"]) == (waiting, "The server is shutting down")
        assert (errors, status) == ("", 0)
    other.data("task_add", tasks=[{"title": "A"}])
    assert other.data("task_next")["task"]["title"] == "A"


@on_http
@pytest.mark.parametrize("kind", ["session", "no session", "stateless"])
def test_a_wait_of_a_client_that_disconnects_claims_nothing(location: WorkspaceLocation, kind: str) -> None:
    with ExitStack() as stack:
        host = stack.enter_context(HttpServerProcess("--profile", "agent", *database(location)))
        other = stack.enter_context(open_session(host))
        client = stack.enter_context(open_session(host)) if kind == "session" else None
        with waiting_over_http(host, client, stateless=kind == "stateless"):
            pass
        add = msgspec.json.encode(tool_request(1, "task_add", {"tasks": [{"title": "A"}]}))
        structured(other.exchange(add))
        # Time enough for a call that still waits.
        wait = msgspec.json.encode(tool_request(2, "task_next", {"wait": "1s", "labels": ["none"]}))
        assert structured(other.exchange(wait))["task"] is None
        claim = msgspec.json.encode(tool_request(3, "task_next", {}))
        assert structured(other.exchange(claim))["task"]["title"] == "A"


@on_http
def test_a_server_that_stops_ends_its_waits(location: WorkspaceLocation) -> None:
    arguments = ("--profile", "agent", *database(location))
    with HttpServerProcess(*arguments) as host, waiting_over_http(host, None, stateless=True):
        assert host.end()[0] == 0
    with HttpServerProcess(*arguments) as host, open_session(host) as client:
        add = tool_request(1, "task_add", {"tasks": [{"title": "A"}]})
        structured(client.exchange(msgspec.json.encode(add)))
        claim = tool_request(2, "task_next", {})
        assert structured(client.exchange(msgspec.json.encode(claim)))["task"]["title"] == "A"
