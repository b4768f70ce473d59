"""The tool `context` and the resource of a task's pack, as a client gets them."""

from __future__ import annotations

from tests.contracts.agent_calls import AgentCalls
from tests.contracts.contract_replay import StartServer


def text_of(agent: AgentCalls, **arguments: object) -> str:
    (block,) = agent.call("context", **arguments)["content"]
    text: str = block["text"]
    return text


def test_the_pack_of_a_task_has_the_task_and_what_it_needs(serve: StartServer) -> None:
    agent = AgentCalls(serve("agent"))
    agent.data("save_prompt", name="deploy-guide", content="How to deploy")
    agent.data("task_add", tasks=[{"title": "Deploy", "notes": "On Friday"}])
    first = text_of(agent, task=1)
    assert "## Task (todo) task:1: Deploy (" in first
    assert "## Found prompt deploy-guide (" in first
    # A client that compacts its context, or an agent that shares the connection, needs it again.
    assert text_of(agent, task=1) == first
    text_of(agent, query="deploy", budget=200)
    assert text_of(agent, task=1) == first
    agent.data("save_prompt", name="deploy-guide", content="How to deploy now")
    assert "How to deploy now" in text_of(agent, query="deploy")
    (contents,) = agent.server.request("resources/read", {"uri": "dittybag://packs/task/1"})["contents"]
    assert contents["mimeType"] == "text/markdown"
    assert "On Friday" in contents["text"]
    assert "How to deploy now" in contents["text"]
    templates = agent.server.request("resources/templates/list")["resourceTemplates"]
    assert "dittybag://packs/task/{id}" in [template["uriTemplate"] for template in templates]
    for missing in ("99", "x", "9" * 40):
        agent.server.error("resources/read", {"uri": f"dittybag://packs/task/{missing}"})
