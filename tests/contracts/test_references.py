"""One way to name anything: names, URIs, numbers and UUIDs, and errors that say what was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contracts.agent_calls import AgentCalls
from tests.contracts.contract_replay import ServerVariant, StartServer, create_project
from tests.contracts.library_fixtures import write_twig_library


@pytest.fixture(params=[ServerVariant("stdio"), ServerVariant("http", "postgres")], ids=str)
def variant(request: pytest.FixtureRequest) -> ServerVariant:
    chosen: ServerVariant = request.param
    return chosen


@pytest.fixture
def agent(serve: StartServer, tmp_path: Path) -> AgentCalls:
    home = tmp_path / "home"
    write_twig_library(home / "libraries" / "team", {"notes": "library"})
    write_twig_library(home / "libraries" / "task", {"7": "library 7", "x": "library x"})
    agent = AgentCalls(serve("agent", env={"DITTYBAG_HOME": str(home)}))
    agent.data("save_prompt", name="notes", content="prompt", title="All my notes")
    agent.data("save_resource", uri="file:///notes", content="resource", name="notes")
    agent.data("save_resource", uri="task:9", content="a URI", name="nine")
    agent.data("task_add", tasks=[{"title": "T", "notes": "task"}])
    return agent


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        ("prompt:notes", "prompt"),
        ("resource:notes", "resource"),
        ("file:///notes", "resource"),
        ("resource:file:///notes", "resource"),
        ("team:notes", "library"),
        ("library:team:notes", "library"),
        ("All my notes", "prompt"),
        ("  prompt:notes\n", "prompt"),
        ("nine", "a URI"),
        ("resource:task:9", "a URI"),
        ("task:9", "a URI"),
        ("task:7", "library 7"),
        ("task:x", "library x"),
        ("library:task:7", "library 7"),
    ],
)
def test_a_reference_names_one_thing(agent: AgentCalls, ref: str, text: str) -> None:
    assert agent.read_text(ref) == text


def test_a_task_is_named_by_its_number(agent: AgentCalls) -> None:
    (row,) = agent.data("task_list")["tasks"]
    assert agent.read_text(row["ref"]) == agent.read_text(row["ref"].removeprefix("task:")) == "task"


def test_prompts_and_resources_are_named_by_their_uuids(agent: AgentCalls, serve: StartServer) -> None:
    store = serve("all")
    (prompt,) = store.data("list_prompts")["prompts"]
    resource = store.call("update_resource", name="notes", description="x")["structuredContent"]
    assert agent.read_text(prompt["id"].upper()) == "prompt"
    assert agent.read_text(resource["id"]) == "resource"
    agent.data("delete", ref=prompt["id"])
    assert agent.data("undo", ref=prompt["id"])["undone"][0]["title"] == "All my notes"


def test_an_ambiguous_reference_lists_what_it_fits(agent: AgentCalls) -> None:
    for tool in ("read", "delete", "task_update", "history", "undo"):
        assert agent.error(tool, ref="notes") == (
            "AMBIGUOUS",
            "'notes' matches several items: prompt:notes, resource:notes",
        )
    (row,) = agent.data("task_list")["tasks"]
    number = row["ref"].removeprefix("task:")
    agent.data("save_prompt", name=number, content="a number")
    assert agent.error("read", ref=number)[1].endswith(f"prompt:{number}, task:{number}")
    assert agent.read_text(f"prompt:{number}") == "a number"


def test_a_tool_for_one_kind_finds_only_that_kind(agent: AgentCalls) -> None:
    assert agent.use_prompt("notes") == "prompt"
    (row,) = agent.data("task_list")["tasks"]
    number = row["ref"].removeprefix("task:")
    agent.data("save_prompt", name=number, content="a number")
    assert agent.data("task_update", ref=number, status="done")["status"] == "done"
    assert agent.error("use_prompt", ref="nine") == (
        "INVALID_INPUT",
        "ref 'nine' is not a prompt; use read to get it",
    )
    assert agent.error("task_update", ref="nine", status="done")[1] == "ref 'nine' is not a task"


@pytest.mark.parametrize(
    ("ref", "near"),
    [
        ("promt:notes", ""),
        ("team:note", "Did you mean team:notes?"),
        ("file:///note", "Did you mean file:///notes?"),
        ("nothing like it", "Search for it to find its ref."),
        ("task:99", ""),
        ("library:none:x", ""),
        ("550e8400-e29b-41d4-a716-446655440000", "Search for it to find its ref."),
        ("x" * 2000, "Search for it to find its ref."),
    ],
)
def test_a_reference_that_fits_nothing_names_near_ones(agent: AgentCalls, ref: str, near: str) -> None:
    for tool in ("read", "delete", "use_prompt", "history", "undo"):
        if ref == "task:99" and tool == "history":
            continue
        code, message = agent.error(tool, ref=ref)
        assert code == "NOT_FOUND"
        assert message.startswith("There is nothing called '")
        assert near in message
        assert len(message) < 1000


@pytest.mark.parametrize("ref", ["", " ", "a\0b", "x" * 3000])
def test_what_cannot_be_a_reference_is_refused(agent: AgentCalls, ref: str) -> None:
    assert agent.error("read", ref=ref)[0] == "INVALID_INPUT"


def test_a_change_is_named_by_its_number(agent: AgentCalls) -> None:
    newest = agent.data("history", limit=1)["changes"][0]["ref"]
    assert agent.read(newest)[1]["kind"] == "change"
    assert agent.error("delete", ref=newest)[0] == "INVALID_INPUT"
    assert agent.error("read", ref="change:999999999999999999")[0] == "NOT_FOUND"
    assert agent.error("undo", ref="change:999999999999999999")[0] == "NOT_FOUND"


def test_other_projects_are_not_reached(serve: StartServer, location: Path | str) -> None:
    create_project(location, "secret")
    other = AgentCalls(serve("agent", "--project", "secret"))
    other.data("save_prompt", name="plan", content="hidden")
    change = other.data("history", ref="plan")["changes"][0]["ref"]
    agent = AgentCalls(serve("agent"))
    for tool in ("read", "delete", "use_prompt", "history", "undo"):
        assert agent.error(tool, ref="plan")[0] == "NOT_FOUND"
    assert agent.error("undo", ref=change)[0] == "NOT_FOUND"
    assert agent.error("read", ref=change)[0] == "NOT_FOUND"


def test_unknown_arguments_are_refused_with_the_nearest(agent: AgentCalls) -> None:
    assert agent.error("read", ref="nine", ofset=1) == (
        "INVALID_INPUT",
        "ofset is not an argument; did you mean offset?",
    )
    assert agent.error("task_list", groups=True)[1] == (
        "groups is not an argument; "
        "known arguments: status, ready, project, label, assignee, parent, priority, due_by, order, limit, "
        "offset"
    )
    assert agent.error("save_prompt", nam="x", contents=1)[1] == (
        "name is required; content is required; nam is not an argument; did you mean name?; "
        "contents is not an argument; did you mean content?"
    )


def test_own_tools_refuse_unknown_arguments_in_the_profile_all_and_contract_tools_ignore_them(
    serve: StartServer,
) -> None:
    server = serve()
    server.text("create_prompt", name="a", content="x", colour="red")
    for tool in ("read", "use_prompt"):
        assert "did you mean ref?" in server.refusal(tool, ref="a", reff="b")
    assert server.data("task_list", colour="red") == []
