"""The profile `agent` as clients see it: tools, restrictions, instructions, and several agents at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.contracts.agent_calls import AgentCalls
from tests.contracts.contract_replay import HANDSHAKE_VERSIONS, StartServer, initialize
from tests.contracts.library_fixtures import DISCOVER, ENVELOPE

READING = {"context", "search", "read", "use_prompt", "task_list", "history"}
WRITING = {"save_prompt", "save_resource", "delete", "task_add", "task_update", "undo"}
WRITING |= {"task_next", "task_done", "task_release"}
#: It changes the connection, and may create a project.
SELECTING = {"project"}


def test_the_profile_has_one_tool_for_each_thing(serve: StartServer) -> None:
    server = serve("agent")
    tools = server.tools()
    assert tools.keys() == READING | WRITING | SELECTING
    assert server.first_response["result"]["serverInfo"]["name"] == "dittybag"
    for name, tool in tools.items():
        assert tool["annotations"]["readOnlyHint"] is (name in READING)
        assert tool["inputSchema"]["additionalProperties"] is False
        assert ("outputSchema" in tool) is (name not in ("read", "context"))
    assert tools["read"]["_meta"] == {
        "anthropic/alwaysLoad": True,
        "anthropic/maxResultSizeChars": 400_000,
    }


def test_prompts_and_resources_are_listed_as_in_the_profile_all(serve: StartServer) -> None:
    agent = AgentCalls(serve("agent"))
    agent.data("save_prompt", name="greet", content="Hello {{ who }}")
    agent.data("save_resource", uri="file:///a", content="x")
    (prompt,) = agent.server.request("prompts/list")["prompts"]
    assert prompt["arguments"] == [{"name": "who", "required": True}]
    resources = agent.server.request("resources/list")["resources"]
    assert [resource["uri"] for resource in resources] == ["file:///a", "dittybag://tasks/ready"]
    result = serve("all").first_response["result"]
    assert agent.server.first_response["result"]["capabilities"] == result["capabilities"]


def test_read_only_and_toolsets_restrict_the_tools(serve: StartServer) -> None:
    assert serve("agent", "--read-only").tools().keys() == READING | SELECTING
    tasks = {"read", "delete", "task_add", "task_list", "task_update"}
    tasks |= {"task_next", "task_done", "task_release"}
    assert serve("agent", "--toolsets", "tasks").tools().keys() == tasks
    prompts = {"read", "use_prompt", "save_prompt", "delete"}
    assert serve("agent", "--toolsets", "prompts").tools().keys() == prompts
    assert serve("agent", "--toolsets", "resources", "--read-only").tools().keys() == {"read"}


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_every_revision_gets_results_that_it_knows(serve: StartServer, version: str) -> None:
    server = serve("agent", first_request=initialize(version))
    listed = server.tools()["search"]
    assert ("outputSchema" in listed) is ("_meta" in listed) is (version >= "2025-06-18")
    added = server.call("task_add", tasks=[{"title": "A"}])
    assert ("structuredContent" in added) is (version >= "2025-06-18")
    assert "task:1" in added["content"][0]["text"]
    server.call("save_resource", uri="file:///a.pdf", base64="JVBERi0x" * 10_000)
    link, _ = server.call("read", ref="a.pdf")["content"]
    assert link["type"] == ("resource_link" if version >= "2025-06-18" else "text")


def test_a_stateless_client_calls_the_tools(serve: StartServer) -> None:
    server = serve("agent", first_request=DISCOVER)
    params = {"name": "task_add", "arguments": {"tasks": [{"title": "A"}]}, "_meta": ENVELOPE}
    added = server.request("tools/call", params)["structuredContent"]["added"]
    assert [row["ref"] for row in added] == ["task:1"]
    assert server.first_response["result"]["instructions"].startswith("Use Dittybag when ")


def test_agents_that_save_the_same_names_at_once_lose_nothing(serve: StartServer) -> None:
    agents = [AgentCalls(serve("agent")) for _ in range(6)]
    each = 20

    def save(agent: AgentCalls) -> None:
        for number in range(each):
            agent.data("save_prompt", name="shared", content=f"{{{{ x }}}} {number}")
            agent.data("save_resource", uri="file:///shared", content=str(number))

    with ThreadPoolExecutor(len(agents)) as pool:
        list(pool.map(save, agents))
    for ref in ("prompt:shared", "file:///shared"):
        assert agents[0].read(ref)[1]["version"] == len(agents) * each


def test_only_one_of_several_agents_gets_a_version(serve: StartServer) -> None:
    agents = [AgentCalls(serve("agent")) for _ in range(3)]

    def save(agent: AgentCalls) -> bool:
        return not agent.call("save_prompt", name="once", content="x", if_version=0)["isError"]

    with ThreadPoolExecutor(len(agents)) as pool:
        assert sum(pool.map(save, agents)) == 1
