"""Plans of agents: tasks with keys, edges and labels in one call, and what lists and `read` show."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contracts.agent_calls import AgentCalls
from tests.contracts.contract_replay import Json, ServerVariant, StartServer, WorkspaceLocation, dittybag
from tests.contracts.contract_replay import database as database_of


@pytest.fixture(params=[ServerVariant("stdio"), ServerVariant("http", "postgres")], ids=str)
def variant(request: pytest.FixtureRequest) -> ServerVariant:
    chosen: ServerVariant = request.param
    return chosen


@pytest.fixture
def agent(serve: StartServer) -> AgentCalls:
    return AgentCalls(serve("agent"))


PLAN: list[Json] = [
    {"title": "Ship it", "key": "ship"},
    {"title": "Design", "key": "design", "parent": "ship", "labels": ["ui"], "assignee": "ann"},
    {
        "title": "Build",
        "key": "build",
        "parent": "ship",
        "blocked_by": ["design"],
        "links": ["https://example.com/spec", "greet"],
        "labels": ["ui", "code"],
        "time_estimate": "3 days",
    },
    {"title": "Test", "parent": "ship", "blocked_by": ["build", "design"], "energy": "deep"},
]


def refs(agent: AgentCalls, tasks: list[Json]) -> dict[str, str]:
    """Add tasks, and return their references by title."""
    return {row["title"]: row["ref"] for row in agent.data("task_add", tasks=tasks)["added"]}


def titles(agent: AgentCalls, **filters: Any) -> list[str]:
    return [row["title"] for row in agent.data("task_list", **filters)["tasks"]]


def test_a_plan_has_edges_between_its_tasks(agent: AgentCalls) -> None:
    known = refs(agent, PLAN)
    rows = {row["title"]: row for row in agent.data("task_list")["tasks"]}
    assert {title: row.get("waits_for", 0) for title, row in rows.items()} == {
        "Ship it": 3,
        "Design": 0,
        "Build": 1,
        "Test": 2,
    }
    assert (rows["Design"]["assignee"], rows["Build"]["labels"]) == ("ann", ["ui", "code"])
    more = [{"title": "Deploy", "blocked_by": [known["Test"]], "parent": known["Ship it"]}]
    refs(agent, more)
    assert titles(agent, parent=known["Ship it"]) == ["Design", "Build", "Test", "Deploy"]
    # All of a call is one batch.
    assert len(agent.data("undo", ref=known["Design"], force=True)["undone"]) == 4


def test_tasks_are_filtered(agent: AgentCalls) -> None:
    known = refs(agent, PLAN)
    assert titles(agent, ready=True) == ["Design"]
    assert titles(agent, label="ui") == ["Design", "Build"]
    assert titles(agent, assignee="ann") == ["Design"]
    agent.data("task_done", ref=known["Design"])
    agent.data("task_update", ref=known["Build"], status="dropped")
    assert titles(agent, status="done") == ["Design"]
    assert titles(agent, status="dropped") == ["Build"]
    assert titles(agent, ready=True) == ["Test"]
    assert titles(agent) == ["Ship it", "Test"]
    assert agent.error("task_list", ready=True, status="done")[0] == "INVALID_INPUT"
    assert agent.error("task_list", parent="greet")[1] == (
        "parent 'greet' is not a task; use for example task:12"
    )


def test_a_task_is_read_with_what_is_around_it(agent: AgentCalls) -> None:
    known = refs(agent, PLAN)
    agent.data("task_done", ref=known["Design"], comment="Drawn on paper")
    fence = agent.data("task_next", lease="1h")["fence"]
    agent.data("task_update", ref=known["Build"], fence=fence, comment="Walls stand")
    _, described = agent.read(known["Build"])
    assert described["parent"] == {
        "ref": known["Ship it"],
        "title": "Ship it",
        "status": "todo",
        "parts": "1 of 3 done",
    }
    assert described["blocked_by"] == [{"ref": known["Design"], "title": "Design", "status": "done"}]
    assert described["links"] == ["https://example.com/spec", "greet"]
    assert (described["holder"], described["until"] > described["updated_at"]) == ("mcp", True)
    (comment,) = described["comments"]
    assert (comment["author"], comment["text"]) == ("mcp", "Walls stand")
    assert (described["time_estimate"], "energy" in described) == ("3 days", False)
    _, described = agent.read(known["Ship it"])
    assert (described["parts"], "parent" in described, "holder" in described) == ("1 of 3 done", False, False)
    _, described = agent.read(known["Test"])
    assert (described["energy"], "time_estimate" in described) == ("deep", False)


def test_edges_are_changed_and_cleared(agent: AgentCalls) -> None:
    known = refs(agent, PLAN)
    changes = {"blocked_by": [], "parent": "", "labels": [], "links": ["a"], "assignee": "bob"}
    agent.data("task_update", ref=known["Build"], **changes)
    _, described = agent.read(known["Build"])
    assert described.keys().isdisjoint({"blocked_by", "parent", "labels"})
    assert (described["links"], described["assignee"]) == (["a"], "bob")
    agent.data("task_update", ref=known["Build"], blocked_by=[known["Design"]], assignee="")
    assert "assignee" not in agent.read(known["Build"])[1]
    code, message = agent.error("task_update", ref=known["Design"], blocked_by=[known["Test"]])
    assert (code, message.count("'Design'"), "'Test'" in message) == ("TASK_CYCLE", 2, True)


@pytest.mark.parametrize(
    ("tasks", "code", "problem"),
    [
        ([{"title": "A", "blocked_by": ["b"]}], "INVALID_INPUT", "no task has the key 'b'"),
        ([{"title": "A", "parent": "task:99"}], "INVALID_INPUT", "task 99 does not exist"),
        ([{"title": "A", "key": "a"}, {"title": "B", "key": "a"}], "INVALID_INPUT", "key 'a' is not unique"),
        (
            [
                {"title": "A", "key": "a", "blocked_by": ["b"]},
                {"title": "B", "key": "b", "blocked_by": ["a"]},
            ],
            "TASK_CYCLE",
            "would wait for each other",
        ),
        ([{"title": "A"}] * 201, "INVALID_INPUT", "at most 200 items"),
        ([{"title": "A"}, {"title": "B", "labels": ["x" * 51]}], "INVALID_INPUT", "tasks[1]: Label '"),
        (
            [{"title": "A"}, {"title": "B", "project": "defualt"}],
            "PROJECT_NOT_FOUND",
            "Did you mean default?",
        ),
    ],
    ids=["key", "number", "same key", "cycle", "too many", "label", "project"],
)
def test_nothing_is_added_if_one_task_is_invalid(
    agent: AgentCalls, tasks: list[Json], code: str, problem: str
) -> None:
    refused = agent.error("task_add", tasks=tasks)
    assert (refused[0], problem in refused[1]) == (code, True), refused
    assert agent.data("task_list")["total"] == 0


def test_two_hundred_tasks_are_added_in_one_call(agent: AgentCalls) -> None:
    tasks = [{"title": f"T{n}", "key": f"k{n}", "blocked_by": [f"k{n - 1}"] if n else []} for n in range(200)]
    agent.data("task_add", tasks=tasks)
    assert (agent.data("task_list")["total"], titles(agent, ready=True)) == (200, ["T0"])


def test_an_unknown_project_is_refused_with_near_names(agent: AgentCalls) -> None:
    agent.data("project", action="create", name="website")
    (row,) = agent.data("task_add", tasks=[{"title": "A", "project": "website"}])["added"]
    assert row["project"] == "website"
    for tool, arguments in (
        ("task_list", {"project": "webiste"}),
        ("task_next", {"project": "webiste"}),
        ("task_update", {"ref": row["ref"], "project": "webiste"}),
    ):
        assert agent.error(tool, **arguments) == (
            "PROJECT_NOT_FOUND",
            "Project 'webiste' does not exist. Did you mean website?",
        )


def test_a_connection_claims_from_its_project(
    agent: AgentCalls, serve: StartServer, location: WorkspaceLocation
) -> None:
    dittybag("project", "create", "website", *database_of(location))
    website = AgentCalls(serve("agent", "--project", "website"))
    agent.data("task_add", tasks=[{"title": "Private"}])
    assert website.data("task_next")["task"] is None
    (row,) = website.data("task_add", tasks=[{"title": "Shared"}])["added"]
    assert row["project"] == "website"
    claimed = website.data("task_next")
    assert claimed["task"]["title"] == "Shared"
    # The default project is that of no project: there, everything can be claimed.
    website.data("task_add", tasks=[{"title": "Urgent", "priority": 5}])
    assert agent.data("task_next")["task"]["title"] == "Urgent"
    assert agent.error("undo", ref=row["ref"])[0] == "TASK_CLAIMED"
    website.data("task_release", ref=row["ref"], fence=claimed["fence"])
    assert len(agent.data("history", ref=row["ref"])["changes"]) == 3
    assert agent.data("undo", ref=row["ref"])["undone"][0]["title"] == "Shared"


def test_a_large_claim_fits(agent: AgentCalls) -> None:
    comment = 'é"' * 4_000
    blockers = [{"title": "B" * 500, "key": f"b{n}"} for n in range(30)]
    task = {"title": "T" * 500, "notes": "n\n" * 50_000, "links": ["l" * 2_000] * 1, "parent": "p"}
    plan = [
        {**task, "blocked_by": [f"b{n}" for n in range(30)]},
        {"title": "P", "key": "p", "notes": "x" * 9_000},
    ]
    ref = agent.data("task_add", tasks=[*plan, *blockers])["added"][0]["ref"]
    while (rows := agent.data("task_list", ready=True)["tasks"])[0]["ref"] != ref:
        for row in rows:
            agent.data("task_done", ref=row["ref"], comment=comment)
    agent.data("task_update", ref=ref, comment=comment)
    # The size is checked by `AgentCalls.call`.
    claimed = agent.data("task_next")
    assert claimed["task"]["ref"] == ref
    assert claimed["more"] == f"read {ref} gives the rest"
    assert len(claimed["task"]["notes"]) > 1_000
    assert claimed["done_before"][0]["comments"]
