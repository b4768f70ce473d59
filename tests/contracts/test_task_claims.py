"""Claims: one client gets a task, names its fence, and loses it by lapse or the end of its connection."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

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
from tests.contracts.http_server_process import HttpServerProcess, McpHttpClient
from tests.contracts.library_fixtures import ENVELOPE
from tests.contracts.task_clients import (
    MAX_SECONDS,
    StdioTaskClient,
    on_http,
    on_stdio,
    open_session,
    structured,
    tool_request,
)

CLIENTS = 8
ROUNDS = 3


@pytest.fixture(params=VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> ServerVariant:
    chosen: ServerVariant = request.param
    return chosen


def test_one_of_eight_clients_gets_a_task(serve: StartServer) -> None:
    agents = [AgentCalls(serve("agent")) for _ in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        for number in range(ROUNDS):
            (added,) = agents[number].data("task_add", tasks=[{"title": "Once"}])["added"]
            answers = list(pool.map(lambda agent: agent.data("task_next"), agents))
            (won,) = [answer for answer in answers if answer["task"] is not None]
            assert won["task"]["ref"] == added["ref"]
            holders = [row["holder"] for row in agents[0].data("task_list")["tasks"] if "holder" in row]
            assert len(holders) == number + 1


def test_only_the_named_fence_changes_a_claimed_task(serve: StartServer) -> None:
    holder, other = AgentCalls(serve("agent")), AgentCalls(serve("agent"))
    holder.data("task_add", tasks=[{"title": "A"}])
    claimed = holder.data("task_next", lease="1h")
    ref, fence = claimed["task"]["ref"], claimed["fence"]
    for tool, arguments in (
        ("task_update", {"priority": 5}),
        ("task_done", {}),
        ("task_release", {}),
        ("task_next", {}),
        ("delete", {}),
    ):
        code, message = other.error(tool, ref=ref, **arguments)
        assert (code, message.startswith("Task 1 is held by 'mcp' (since ")) == ("TASK_CLAIMED", True)
    for tool in ("task_update", "task_done", "task_release"):
        code, message = other.error(tool, ref=ref, fence=fence + 1)
        assert code == "CLAIM_LOST"
        assert f"Fence {fence + 1} of task 1 is no longer valid: 'mcp' has held it since " in message
    renewed = holder.data("task_update", ref=ref, fence=fence)
    assert (renewed["holder"], renewed["until"] >= claimed["until"]) == ("mcp", True)
    assert holder.data("task_update", ref=ref, fence=fence, comment="Half done")["status"] == "doing"
    assert holder.data("task_release", ref=ref, fence=fence, comment="Over to you")["status"] == "todo"
    assert holder.error("task_update", ref=ref, fence=fence)[0] == "CLAIM_LOST"
    again = other.data("task_next")
    assert again["fence"] > fence
    assert [comment["text"] for comment in again["task"]["comments"]] == ["Half done", "Over to you"]
    assert other.data("task_done", ref=ref, fence=again["fence"], status="review")["status"] == "review"
    assert other.error("task_next", ref=ref)[0] == "TASK_NOT_READY"


def test_a_claim_that_lapses_goes_to_the_next_client(serve: StartServer) -> None:
    slow, fast = AgentCalls(serve("agent")), AgentCalls(serve("agent"))
    slow.data("task_add", tasks=[{"title": "A"}])
    lost = slow.data("task_next", lease="1s")
    won = fast.data("task_next", wait="5s")
    assert won["task"]["ref"] == lost["task"]["ref"]
    assert won["fence"] > lost["fence"]
    for tool in ("task_update", "task_done", "task_release"):
        code, message = slow.error(tool, ref=won["task"]["ref"], fence=lost["fence"])
        assert (code, "has held it since" in message) == ("CLAIM_LOST", True)
    assert fast.data("task_done", ref="task:1", fence=won["fence"])["status"] == "done"


def test_calls_of_a_connection_renew_its_claims(serve: StartServer) -> None:
    busy, greedy = AgentCalls(serve("agent")), AgentCalls(serve("agent"))
    busy.data("task_add", tasks=[{"title": "A"}])
    claimed = busy.data("task_next", lease="1s")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(greedy.data, "task_next", wait="3s")
        while not waiting.done():
            busy.data("task_list")
        assert waiting.result()["task"] is None
    assert busy.data("task_update", ref="task:1", fence=claimed["fence"])["holder"] == "mcp"
    assert greedy.data("task_next", wait="5s")["task"]["ref"] == "task:1"


@pytest.mark.parametrize(
    ("argument", "value"), [("lease", "0s"), ("lease", "25h"), ("lease", "soon"), ("wait", "2d")]
)
@pytest.mark.parametrize("variant", [ServerVariant()], ids=str)
def test_a_duration_has_bounds(serve: StartServer, argument: str, value: str) -> None:
    code, message = AgentCalls(serve("agent")).error("task_next", **{argument: value})
    assert code == "INVALID_INPUT"
    assert message.startswith(f"{argument} '{value}' must be a duration such as 90s, 15m or 2h, ")
    assert message.endswith("24h")


@pytest.mark.parametrize("variant", [ServerVariant()], ids=str)
def test_the_tools_of_the_task_contract_respect_claims(serve: StartServer) -> None:
    agent, tasks = AgentCalls(serve("agent")), serve("tasks")
    agent.data("task_add", tasks=[{"title": "A"}])
    fence = agent.data("task_next")["fence"]
    for tool in ("task_update", "task_complete", "task_delete"):
        more = {"priority": 1} if tool == "task_update" else {}
        refused = tasks.refusal(tool, task_id=1, **more)
        assert refused.startswith("Task 1 is held by 'mcp' (since ")
    agent.data("task_done", ref="task:1", fence=fence)
    assert tasks.data("task_get", task_id=1)["completed"]


# The end of a connection


@on_stdio
@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
def test_the_end_of_a_connection_releases_its_claims(location: WorkspaceLocation, how: str) -> None:
    with StdioTaskClient(location) as holder, StdioTaskClient(location) as other:
        holder.data("task_add", tasks=[{"title": "A"}, {"title": "B"}, {"title": "C"}])
        kept = other.data("task_next")
        for _ in range(2):
            assert holder.data("task_next")["task"] is not None
        waiting = other.start_waiting()
        if how == "SIGTERM":
            holder.wire.process.send_signal(signal.SIGTERM)
        else:
            holder.wire.hang_up()
        assert structured(other.response(waiting, MAX_SECONDS))["task"]["title"] == "B"
        assert holder.wire.rest()[1:] == ("", 0)
        assert other.data("task_next")["task"]["title"] == "C"
        assert other.data("task_done", ref="task:1", fence=kept["fence"])["status"] == "done"


@on_stdio
def test_a_call_before_the_end_of_the_input_counts(location: WorkspaceLocation) -> None:
    with StdioTaskClient(location) as holder, StdioTaskClient(location) as other:
        holder.data("task_add", tasks=[{"title": "A"}, {"title": "B"}])
        fence = holder.data("task_next")["fence"]
        done = holder.send("task_done", ref="task:1", fence=fence)
        following = holder.send("task_next")
        holder.wire.hang_up()
        assert structured(holder.response(done))["status"] == "done"
        assert structured(holder.response(following))["task"]["title"] == "B"
        assert holder.wire.rest()[2] == 0
        rows = other.data("task_list")["tasks"]
        assert [(row["title"], row["status"]) for row in rows] == [("B", "todo")]


@on_stdio
def test_the_claims_of_a_killed_server_lapse(location: WorkspaceLocation) -> None:
    with StdioTaskClient(location) as holder, StdioTaskClient(location) as other:
        holder.data("task_add", tasks=[{"title": "A"}])
        holder.data("task_next", lease="1s")
        holder.wire.process.kill()
        assert other.data("task_next", wait="5s")["task"]["title"] == "A"


@on_http
def test_the_end_of_a_session_releases_its_claims(location: WorkspaceLocation) -> None:
    arguments = ("--profile", "agent", *database(location))
    with ExitStack() as stack:
        first, second = (stack.enter_context(HttpServerProcess(*arguments)) for _ in range(2))
        holder = stack.enter_context(open_session(first))
        add = tool_request(1, "task_add", {"tasks": [{"title": "A"}]})
        structured(holder.exchange(msgspec.json.encode(add)))
        claim = msgspec.json.encode(tool_request(2, "task_next", {}))
        assert structured(holder.exchange(claim))["task"] is not None
        other = stack.enter_context(open_session(second))
        assert structured(other.exchange(claim))["task"] is None
        # Another server behind the same address may get the request.
        elsewhere = stack.enter_context(closing(McpHttpClient(second)))
        elsewhere.session, elsewhere.version = holder.session, holder.version
        elsewhere.end_session()
        assert structured(other.exchange(claim))["task"]["title"] == "A"


@on_http
def test_a_claim_without_a_session_stays_until_it_lapses(location: WorkspaceLocation) -> None:
    with ExitStack() as stack:
        host = stack.enter_context(HttpServerProcess("--profile", "agent", *database(location)))
        client, other = (stack.enter_context(closing(McpHttpClient(host))) for _ in range(2))
        add = tool_request(1, "task_add", {"tasks": [{"title": "A"}]}, **ENVELOPE)
        structured(client.exchange(msgspec.json.encode(add)))
        claim = msgspec.json.encode(tool_request(2, "task_next", {"lease": "1s"}, **ENVELOPE))
        first = structured(client.exchange(claim))
        client.close()
        wait = msgspec.json.encode(tool_request(3, "task_next", {"wait": "5s"}, **ENVELOPE))
        again = structured(other.exchange(wait))
        assert (first["task"]["title"], again["task"]["title"]) == ("A", "A")
        assert again["fence"] > first["fence"]
