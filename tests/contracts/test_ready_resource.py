"""The resource of ready tasks: its content, and notifications when it may have changed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import msgspec
import pytest

from tests.contracts.agent_calls import AgentCalls
from tests.contracts.contract_replay import (
    VARIANTS,
    Json,
    ServerUnderTest,
    ServerVariant,
    StartServer,
    WorkspaceLocation,
    database,
)
from tests.contracts.http_server_process import JSON, HttpServerProcess, open_event_stream, routing_headers
from tests.contracts.library_fixtures import ENVELOPE
from tests.contracts.task_clients import (
    MAX_SECONDS,
    on_http,
    on_stdio,
    open_session,
    structured,
    tool_request,
)
from tests.stdio_server_process import StdioServerProcess

URI = "dittybag://tasks/ready"
UPDATED = "notifications/resources/updated"


@pytest.fixture(params=VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> ServerVariant:
    chosen: ServerVariant = request.param
    return chosen


def read_ready(server: ServerUnderTest) -> Json:
    (contents,) = server.request("resources/read", {"uri": URI})["contents"]
    assert (contents["uri"], contents["mimeType"]) == (URI, "application/json")
    ready: Json = msgspec.json.decode(contents["text"])
    return ready


def test_ready_tasks_are_listed_best_first(serve: StartServer) -> None:
    agent = AgentCalls(serve("agent"))
    listed = agent.server.request("resources/list")["resources"]
    assert [resource["uri"] for resource in listed] == [URI]
    assert read_ready(agent.server) == {"total": 0, "tasks": []}
    agent.data(
        "task_add",
        tasks=[
            {"title": "Low", "priority": 1},
            {"title": "High", "key": "high", "priority": 5},
            {"title": "Blocked", "blocked_by": ["high"]},
        ],
    )
    ready = read_ready(agent.server)
    assert (ready["total"], [row["title"] for row in ready["tasks"]]) == (2, ["High", "Low"])
    assert ready["tasks"][0] == {"ref": "task:2", "title": "High", "priority": 5, "status": "todo"}
    fence = agent.data("task_next")["fence"]
    assert [row["title"] for row in read_ready(agent.server)["tasks"]] == ["Low"]
    agent.data("task_done", ref="task:2", fence=fence)
    assert [row["title"] for row in read_ready(agent.server)["tasks"]] == ["Blocked", "Low"]
    blocks, _ = agent.read(URI)
    assert msgspec.json.decode(blocks[0]["text"])["total"] == 2


@pytest.mark.parametrize("variant", [ServerVariant()], ids=str)
def test_the_list_is_never_long(serve: StartServer) -> None:
    agent = AgentCalls(serve("agent"))
    agent.data("task_add", tasks=[{"title": "é" * 500} for _ in range(60)])
    ready = read_ready(agent.server)
    assert ready["total"] == 60
    assert 20 < len(ready["tasks"]) <= 50


@pytest.mark.parametrize("variant", [ServerVariant()], ids=str)
def test_the_profile_all_lists_the_resource_among_the_templates(serve: StartServer) -> None:
    server = serve("all")
    assert server.request("resources/list")["resources"] == []
    templates = server.request("resources/templates/list")["resourceTemplates"]
    assert URI in [template["uriTemplate"] for template in templates]
    assert read_ready(server)["total"] == 0
    assert "not found" in serve("mcpkg").error("resources/read", {"uri": URI})["message"]


# Notifications


class Subscriber:
    """A client on stdio that is subscribed to the resource, in either era."""

    def __init__(self, location: WorkspaceLocation, stack: ExitStack, *, stateless: bool) -> None:
        self.wire = stack.enter_context(
            StdioServerProcess("dittybag", "serve", "--profile", "agent", *database(location))
        )
        if stateless:
            self._send("subscriptions/listen", notifications={"resourceSubscriptions": [URI]}, _meta=ENVELOPE)
            acknowledged = self.wire.message()
            assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": [URI]}
        else:
            self.wire.handshake()
            self._send("resources/subscribe", uri=URI)
            assert self.wire.message()["result"] == {}

    def _send(self, method: str, **params: object) -> None:
        request = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        self.wire.send(msgspec.json.encode(request))

    def wait_for_update(self, seconds: float = MAX_SECONDS) -> None:
        message = self.wire.message(seconds)
        assert (message["method"], message["params"]["uri"]) == (UPDATED, URI)


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def subscriber(request: pytest.FixtureRequest, location: WorkspaceLocation) -> Iterator[Subscriber]:
    with ExitStack() as stack:
        yield Subscriber(location, stack, stateless=request.param == "2026-07-28")


@on_stdio
def test_a_subscriber_is_notified_of_changes_of_other_processes(
    subscriber: Subscriber, serve: StartServer
) -> None:
    agent = AgentCalls(serve("agent"))
    agent.data("task_add", tasks=[{"title": "A"}])
    subscriber.wait_for_update()
    fence = agent.data("task_next")["fence"]
    subscriber.wait_for_update()
    agent.data("task_release", ref="task:1", fence=fence)
    subscriber.wait_for_update()
    agent.data("task_next", lease="1s")
    subscriber.wait_for_update()
    # The claim lapses.
    subscriber.wait_for_update(1 + MAX_SECONDS)


@on_stdio
def test_a_claim_that_is_older_than_the_subscription_lapses(
    location: WorkspaceLocation, serve: StartServer
) -> None:
    agent = AgentCalls(serve("agent"))
    agent.data("task_add", tasks=[{"title": "A"}])
    agent.data("task_next", lease="2s")
    with ExitStack() as stack:
        Subscriber(location, stack, stateless=False).wait_for_update(2 + MAX_SECONDS)


@pytest.mark.parametrize("variant", [ServerVariant()], ids=str)
def test_many_changes_are_few_notifications(location: WorkspaceLocation, serve: StartServer) -> None:
    agent = AgentCalls(serve("agent"))
    with ExitStack() as stack:
        subscriber = Subscriber(location, stack, stateless=False)
        start = time.monotonic()
        for number in range(100):
            agent.data("task_add", tasks=[{"title": str(number)}])
        subscriber.wait_for_update()
        subscriber.wire.hang_up()
        lines, _, _ = subscriber.wire.rest()
        passed = time.monotonic() - start
    assert len(lines) <= 1 + passed * 4


@on_http
def test_a_stream_over_http_is_notified_by_the_change_of_another_server(location: WorkspaceLocation) -> None:
    arguments = ("--profile", "agent", *database(location))
    params = {"notifications": {"resourceSubscriptions": [URI]}, "_meta": ENVELOPE}
    request = {"jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": params}
    frame = msgspec.json.encode(request)
    with ExitStack() as stack:
        first, second = (stack.enter_context(HttpServerProcess(*arguments)) for _ in range(2))
        headers = {"Content-Type": JSON, **routing_headers(frame)}
        stream = stack.enter_context(open_event_stream(first, "POST", frame, headers))
        assert stream.message()["method"] == "notifications/subscriptions/acknowledged"
        planner = stack.enter_context(open_session(second))
        add = tool_request(1, "task_add", {"tasks": [{"title": "A"}]})
        structured(planner.exchange(msgspec.json.encode(add)))
        message = stream.message(MAX_SECONDS)
        assert (message["method"], message["params"]["uri"]) == (UPDATED, URI)
