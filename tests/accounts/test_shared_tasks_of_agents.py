"""Tasks of a project through the tools and resources of agents: for members, for readers, and for others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.accounts.accounts_world import (
    TEAM_WORD,
    CallOutcome,
    Json,
    TokenHolder,
    World,
    parse_outcome,
    post_message,
)

READY = "dittybag://tasks/ready"


@pytest.fixture(params=["world", "rls_world"], ids=["sqlite", "postgres"])
def team(request: pytest.FixtureRequest) -> World:
    found: World = request.getfixturevalue(request.param)
    return found


def holder(world: World, name: str) -> TokenHolder:
    return next(who for who in world.holders if who.name == name)


class Agent:
    """A client with the token of a user."""

    def __init__(self, world: World, name: str) -> None:
        self._host = world.host("agent")
        self._token = holder(world, name).token

    def request(self, method: str, params: Json) -> CallOutcome:
        return parse_outcome(post_message(self._host, self._token, "/mcp", method, params), "/mcp")

    def call(self, tool: str, /, **arguments: Any) -> CallOutcome:
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def data(self, tool: str, /, **arguments: Any) -> Json:
        outcome = self.call(tool, **arguments)
        assert outcome.kind == "ok", outcome
        (content,) = msgspec.json.decode(outcome.text)["content"]
        found: Json = msgspec.json.decode(content["text"])
        return found

    def shown(self, ref: str, title: str) -> list[bool]:
        """Return whether each way to read shows a task."""
        outcomes = [
            self.call("read", ref=ref),
            self.call("task_list", limit=200, order="newest"),
            self.call("search", query=f'"{title}"'),
            self.call("history", ref=ref),
            self.call("history", limit=5),
        ]
        return [title in outcome.text for outcome in outcomes]

    def is_ready(self, title: str) -> bool:
        return title in self.request("resources/read", {"uri": READY}).text


def new_task(world: World, **fields: Any) -> tuple[str, str]:
    """Create an urgent task of the team; return its reference and title."""
    number = world.new_shared_task(priority=5, due_date="2000-01-01", **fields)
    return f"task:{number}", world.run(world.workspace.tasks.get(world.caller("tests"), number)).title


@pytest.mark.parametrize("name", ["member", "other user", "admin"])
def test_members_see_claim_finish_and_undo(team: World, name: str) -> None:
    agent, (ref, title) = Agent(team, name), new_task(team)
    assert agent.shown(ref, title) == [True] * 5
    assert agent.is_ready(title)
    claimed = agent.data("task_next", ref=ref)
    assert not agent.is_ready(title)
    other = Agent(team, "member" if name != "member" else "other user")
    assert "TASK_CLAIMED" in other.call("task_done", ref=ref).text
    assert agent.data("task_release", ref=ref, fence=claimed["fence"])["status"] == "todo"
    claimed = agent.data("task_next", ref=ref)
    assert agent.data("task_update", ref=ref, fence=claimed["fence"], comment="Half")["holder"]
    assert agent.data("task_done", ref=ref, fence=claimed["fence"])["status"] == "done"
    assert agent.data("undo", ref=ref)["undone"]
    assert agent.data("delete", ref=ref)["deleted"] == ref


WRITES: list[tuple[str, Json]] = [
    ("task_next", {}),
    ("task_done", {}),
    ("task_release", {}),
    ("task_update", {"comment": "x"}),
    ("delete", {}),
    ("undo", {}),
]


@pytest.mark.parametrize("name", ["read role", "read scope"])
def test_readers_see_and_change_nothing(team: World, name: str) -> None:
    agent, (ref, title) = Agent(team, name), new_task(team, status="doing")
    assert agent.shown(ref, title) == [True] * 5
    before = team.last_change()
    for tool, arguments in WRITES:
        outcome = agent.call(tool, ref=ref, **arguments)
        assert outcome.kind != "ok"
        assert "NOT_ALLOWED" in outcome.text or "Unknown tool" in outcome.text, outcome
    assert team.last_change() == before
    _, ready = new_task(team)
    # A reader who cannot claim a task of the project does not find it among those that are ready.
    assert agent.is_ready(ready) is (name == "read scope")


@pytest.mark.parametrize("name", ["outsider", "outsider, admin scope"])
def test_others_do_not_learn_that_a_task_exists(team: World, name: str) -> None:
    agent, (ref, title) = Agent(team, name), new_task(team, status="doing")
    assert agent.shown(ref, title) == [False] * 5
    before = team.last_change()
    for tool, arguments in [("read", {}), ("history", {}), *WRITES]:
        hidden = agent.call(tool, ref=ref, **arguments)
        missing = agent.call(tool, ref="task:987654", **arguments)
        assert hidden.kind != "ok"
        assert hidden.text.replace(ref, "task:987654") == missing.text
    assert team.last_change() == before
    _, ready = new_task(team)
    assert not agent.is_ready(ready)
    assert TEAM_WORD not in agent.call("task_next").text
