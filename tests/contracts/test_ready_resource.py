"""The resource of ready tasks."""

from __future__ import annotations

import msgspec
import pytest

from tests.contracts.agent_calls import AgentCalls
from tests.contracts.contract_replay import (
    VARIANTS,
    Json,
    ServerUnderTest,
    ServerVariant,
    StartServer,
)

URI = "dittybag://tasks/ready"


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
    assert 5 < len(ready["tasks"]) < 50


@pytest.mark.parametrize("variant", [ServerVariant()], ids=str)
def test_the_profile_all_lists_the_resource_among_the_templates(serve: StartServer) -> None:
    server = serve("all")
    assert server.request("resources/list")["resources"] == []
    templates = server.request("resources/templates/list")["resourceTemplates"]
    assert URI in [template["uriTemplate"] for template in templates]
    assert read_ready(server)["total"] == 0
    assert "not found" in serve("mcpkg").error("resources/read", {"uri": URI})["message"]
