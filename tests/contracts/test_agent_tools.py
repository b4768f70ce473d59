"""The tools of the profile `agent` save, read, use, delete and restore prompts, resources and tasks."""

from __future__ import annotations

from base64 import b64decode, b64encode
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.contracts.agent_calls import AgentCalls
from tests.contracts.contract_replay import Json, ServerVariant, StartServer
from tests.contracts.library_fixtures import write_files, write_twig_library

PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg=="
)
WEBP = b"RIFF\x24\0\0\0WEBPVP8 " + bytes(24)
PDF = b"%PDF-1.7\n" + bytes(range(256)) * 10


@pytest.fixture(params=[ServerVariant("stdio"), ServerVariant("http", "postgres")], ids=str)
def variant(request: pytest.FixtureRequest) -> ServerVariant:
    chosen: ServerVariant = request.param
    return chosen


@pytest.fixture
def agent(serve: StartServer) -> AgentCalls:
    return AgentCalls(serve("agent"))


def encoded(content: bytes) -> str:
    return b64encode(content).decode()


# Prompts


def test_a_prompt_is_created_updated_and_used(agent: AgentCalls) -> None:
    saved = agent.data("save_prompt", name="greet", content="Hello {{ who }}", tags=["Mail"])
    assert saved == {
        "ref": "greet",
        "created": True,
        "version": 1,
        "arguments": ["who"],
        "note": "the variable {{ who }} is now an argument; verbatim: true keeps the braces as text",
    }
    assert agent.use_prompt("greet", who="Ann") == "Hello Ann"
    saved = agent.data("save_prompt", name="greet", content="Dear {{ who }} of {{ town }}", title="Greeting")
    assert (saved["created"], saved["version"], saved["arguments"]) == (False, 2, ["who", "town"])
    blocks, described = agent.read("greet")
    assert [block["text"] for block in blocks] == ["Dear {{ who }} of {{ town }}"]
    assert (described["title"], described["tags"], described["version"]) == ("Greeting", ["mail"], 2)
    assert described["arguments"] == [
        {"name": "who", "required": True},
        {"name": "town", "required": True},
    ]


def test_literal_braces_stay_if_the_content_is_verbatim(agent: AgentCalls) -> None:
    saved = agent.data("save_prompt", name="hugo", content="Write {{ title }}", verbatim=True)
    assert "arguments" not in saved
    assert agent.use_prompt("hugo") == "Write {{ title }}"
    agent.data("save_prompt", name="hugo", content="Write {{ title }}!", verbatim=True)
    assert agent.use_prompt("hugo") == "Write {{ title }}!"


def test_declared_arguments_are_kept_and_survive_saving_what_was_read(agent: AgentCalls) -> None:
    who: Json = {"name": "who", "required": False, "description": "A name"}
    language: Json = {"name": "language", "required": True, "choices": ["SQL", "Python"]}
    declared = [who | {"choices": None}, language]
    saved = agent.data("save_prompt", name="greet", content="{{ language }} {{ who }}", arguments=declared)
    assert "note" not in saved
    assert agent.use_prompt("greet", language="SQL") == "SQL "
    (block,), described = agent.read("greet")
    assert described["arguments"] == [who, language]
    agent.data("save_prompt", name="greet", content=block["text"], arguments=described["arguments"])
    assert agent.read("greet")[1]["arguments"] == [who, language]


def test_a_variable_added_to_a_prompt_with_declared_arguments_becomes_one(agent: AgentCalls) -> None:
    declared = [{"name": "who", "required": False}]
    saved = agent.data("save_prompt", name="greet", content="Hi {{ who }}", arguments=declared)
    assert "note" not in saved
    saved = agent.data("save_prompt", name="greet", content="Hi {{ who }} and {{ friend }}")
    assert saved["arguments"] == ["who", "friend"]
    assert saved["note"].startswith("the variable {{ friend }} is now an argument")
    assert "friend" in agent.error("use_prompt", ref="greet", arguments={"who": "Ann"})[1]
    assert agent.use_prompt("greet", who="Ann", friend="Bob") == "Hi Ann and Bob"


def test_a_variable_beside_the_declared_arguments_of_a_call_becomes_one(agent: AgentCalls) -> None:
    saved = agent.data("save_prompt", name="hole", content="{{ a }}", arguments=[{"name": "b"}])
    assert saved["arguments"] == ["b", "a"]
    assert saved["note"].startswith("the variable {{ a }} is now an argument")
    assert agent.use_prompt("hole", a="x") == "x"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"lang": "SQL"}, "'lang' is not an argument of 'review'; did you mean language?"),
        ({"language": "SQL", "xyz": 1}, "'xyz' is not an argument of 'review'; its arguments are language"),
        ({"language": "Go"}, "language must be one of SQL, Python; not 'Go'"),
        ({"language": ""}, "language must be one of SQL, Python; not ''"),
        ({}, "Missing required argument: language (one of: SQL, Python)"),
        ({"language": None}, "Missing required argument: language (one of: SQL, Python)"),
    ],
)
def test_arguments_that_are_missing_or_unknown_and_other_values_than_the_choices_are_refused(
    agent: AgentCalls, given: Json, problem: str
) -> None:
    declared = [{"name": "language", "required": True, "choices": ["SQL", "Python"]}]
    agent.data("save_prompt", name="review", content="Review {{ language }}", arguments=declared)
    assert agent.error("use_prompt", ref="review", arguments=given) == ("INVALID_INPUT", problem)


def test_prompts_get_ignores_other_arguments_and_checks_choices(agent: AgentCalls) -> None:
    declared = [{"name": "language", "choices": ["SQL", "Python"]}]
    agent.data("save_prompt", name="review", content="Review {{ language }}", arguments=declared)
    sent = {"_client": "x", "language": "SQL"}
    (message,) = agent.server.request("prompts/get", {"name": "review", "arguments": sent})["messages"]
    assert message["content"]["text"] == "Review SQL"
    empty = {"name": "review", "arguments": {"language": ""}}
    (message,) = agent.server.request("prompts/get", empty)["messages"]
    assert message["content"]["text"] == "Review "
    refused = agent.server.error("prompts/get", {"name": "review", "arguments": {"language": "Go"}})
    assert (refused["code"], refused["message"]) == (-32602, "language must be one of SQL, Python; not 'Go'")


def test_unknown_members_of_declared_arguments_are_refused(agent: AgentCalls) -> None:
    declared = [{"name": "who", "requird": True}]
    assert agent.error("save_prompt", name="greet", content="Hello {{ who }}", arguments=declared) == (
        "INVALID_INPUT",
        "arguments[0].requird is not an argument; did you mean required?",
    )


def test_a_version_is_compared_before_it_is_replaced(agent: AgentCalls) -> None:
    for tool, address in (("save_prompt", {"name": "a"}), ("save_resource", {"uri": "file:///a"})):
        code, message = agent.error(tool, **address, content="x", if_version=1)
        assert (code, "does not exist" in message) == ("CONFLICT", True)
        assert agent.data(tool, **address, content="x", if_version=0)["created"]
        code, message = agent.error(tool, **address, content="y", if_version=0)
        assert (code, "has version 1" in message) == ("CONFLICT", True)
        assert agent.data(tool, **address, content="y", if_version=1)["version"] == 2
        code, message = agent.error(tool, **address, content="z", if_version=1)
        assert (code, "has version 2" in message) == ("CONFLICT", True)
    assert agent.read_text("prompt:a") == agent.read_text("file:///a") == "y"


def test_a_library_prompt_is_read_and_used(serve: StartServer, tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_twig_library(home / "libraries" / "team", {"greet": "Hello {{ who }}"}, "who")
    agent = AgentCalls(serve("agent", env={"DITTYBAG_HOME": str(home)}))
    assert agent.use_prompt("team:greet", who="Ann") == "Hello Ann"
    blocks, described = agent.read("team:greet")
    assert blocks == [{"type": "text", "text": "Hello {{ who }}"}]
    assert (described["ref"], described["kind"]) == ("team:greet", "library_prompt")
    assert agent.error("delete", ref="team:greet")[0] == "NOT_ALLOWED"
    assert agent.error("use_prompt", ref="team:great")[1].endswith("Did you mean team:greet?")


def test_a_stored_resource_does_not_replace_a_file_of_a_skill(serve: StartServer, tmp_path: Path) -> None:
    home, uri = tmp_path / "home", "skill://team/skills/pdf/SKILL.md"
    text = "---\nname: pdf\ndescription: Reads forms\n---\nOpen the form."
    write_files(home / "libraries" / "team", {"skills/pdf/SKILL.md": text})
    agent = AgentCalls(serve("agent", env={"DITTYBAG_HOME": str(home)}))
    agent.data("save_resource", uri=uri, content="Obey", name="fake")
    agent.data("save_resource", uri=uri.replace("pdf", "other"), content="Mine")
    assert agent.read_text(uri) == agent.read_text(uri.replace("skill:", "SKILL:")) == text
    (contents,) = agent.server.request("resources/read", {"uri": uri})["contents"]
    assert contents["text"] == text
    assert agent.read_text("fake") == "Obey"
    assert agent.read_text(uri.replace("pdf", "other")) == "Mine"


def test_a_long_rendering_comes_in_pieces(agent: AgentCalls) -> None:
    text = 'Read "this":\n{{ text }}'
    agent.data("save_prompt", name="long", content=text)
    value = 'ä\\"\n' * 20_000
    pieces: list[str] = []
    offset: int | None = 0
    while offset is not None:
        part = agent.data("use_prompt", ref="long", arguments={"text": value}, offset=offset)
        pieces += [message["text"] for message in part["messages"]]
        offset = part.get("next_offset")
    assert len(pieces) > 3
    assert "".join(pieces) == f'Read "this":\n{value}'


# Resources


@pytest.mark.parametrize("ending", ["dot", "pdf", "bin", "gz"])
def test_what_is_given_as_text_is_text_whatever_its_uri_looks_like(agent: AgentCalls, ending: str) -> None:
    agent.data("save_resource", uri=f"file:///graph.{ending}", content="digraph { platypus }")
    assert agent.data("search", query="platypus")["total"] == 1
    blocks, described = agent.read(f"file:///graph.{ending}")
    assert blocks == [{"type": "text", "text": "digraph { platypus }"}]
    assert described["mime_type"] == "text/plain"


def test_a_resource_is_created_and_updated(agent: AgentCalls) -> None:
    saved = agent.data("save_resource", uri="file:///docs/a%20note.md", content="# One")
    assert saved == {"ref": "file:///docs/a%20note.md", "created": True, "version": 1}
    _, described = agent.read("file:///docs/a%20note.md")
    assert (described["name"], described["mime_type"]) == ("a-note.md", "text/markdown")
    saved = agent.data("save_resource", uri="file:///docs/a%20note.md", content="# Two", title="Note")
    assert (saved["created"], saved["version"]) == (False, 2)
    assert agent.data("save_resource", uri="file:///docs/a%20note.md", title="Notes")["version"] == 3
    blocks, described = agent.read("a-note.md")
    assert blocks == [{"type": "text", "text": "# Two"}]
    assert described["title"] == "Notes"


def test_resources_with_the_same_file_name_get_different_names(agent: AgentCalls) -> None:
    for folder in ("a", "b", "c"):
        agent.data("save_resource", uri=f"file:///{folder}/notes.md", content=folder)
    names = ("notes.md", "notes.md-2", "notes.md-3")
    assert [agent.read_text(f"resource:{name}") for name in names] == ["a", "b", "c"]
    code, _ = agent.error("save_resource", uri="file:///d/notes.md", content="d", name="notes.md")
    assert code == "DUPLICATE_NAME"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "content or base64 is required for a new resource"),
        ({"content": "a", "base64": "YQ=="}, "Give either content or base64, not both"),
        ({"base64": "?"}, "base64 must be valid base64; use content for text"),
        ({"content": "a\0b"}, "Content must not contain NUL characters"),
    ],
)
def test_a_resource_needs_one_content(agent: AgentCalls, arguments: dict[str, str], problem: str) -> None:
    assert agent.error("save_resource", uri="file:///a", **arguments) == ("INVALID_INPUT", problem)


def test_a_piece_does_not_end_inside_a_combined_character(agent: AgentCalls) -> None:
    text = "👩\u200d👩\u200d👧e\u0301\r\n🇩🇪👍🏽" * 1000
    agent.data("save_resource", uri="file:///faces", content=text)
    for offset in range(20):
        blocks, described = agent.read("file:///faces", offset=offset, max_tokens=1000)
        after = text[described["next_offset"]]
        assert after in "👩e\r🇩👍", ascii(blocks[0]["text"][-5:] + "|" + after)
    assert agent.read_text("file:///faces", max_tokens=1000) == text


def test_a_long_run_of_marks_is_read_to_its_end(agent: AgentCalls) -> None:
    text = "e" + "\u0301" * 30_000
    agent.data("save_resource", uri="file:///zalgo", content=text)
    assert agent.read_text("file:///zalgo", max_tokens=1000) == text


@pytest.mark.parametrize(
    ("ending", "content", "mime_type", "kind"),
    [
        ("png", PNG, "image/png", "image"),
        ("webp", WEBP, "image/webp", "image"),
        ("mp3", b"ID3", "audio/mpeg", "audio"),
        ("pdf", PDF, "application/pdf", "resource"),
        # Only called an image.
        ("png", b"\0fake", "image/png", "resource"),
    ],
)
def test_images_and_audio_are_content_of_their_own_kind_and_other_binaries_are_embedded(
    agent: AgentCalls, ending: str, content: bytes, mime_type: str, kind: str
) -> None:
    uri, data = f"file:///a.{ending}", encoded(content)
    for given in ({}, {"mime_type": mime_type}):
        agent.data("save_resource", uri=uri, base64=data, **given)
        (block,), described = agent.read(uri)
        embedded = {"resource": {"uri": uri, "mimeType": mime_type, "blob": data}}
        assert block == {"type": kind} | (
            embedded if kind == "resource" else {"data": data, "mimeType": mime_type}
        )
        assert described["bytes"] == len(content)


def test_a_large_binary_is_a_link(agent: AgentCalls) -> None:
    large = PDF * 20
    agent.data("save_resource", uri="file:///b.pdf", base64=encoded(large))
    (block,), described = agent.read("file:///b.pdf")
    assert block == {
        "type": "resource_link",
        "uri": "file:///b.pdf",
        "name": "b.pdf",
        "mimeType": "application/pdf",
        "size": len(large),
    }
    assert described["more"] == "read with offset=0 to get it as base64 in pieces"
    assert b64decode(agent.read_text("file:///b.pdf"), validate=True) == large
    (block,), _ = agent.read("file:///b.pdf", max_tokens=100_000)
    assert b64decode(block["resource"]["blob"]) == large


@pytest.mark.parametrize("character", ["x", '"', "\\", "é"])
def test_the_longest_description_fits_into_the_smallest_result(agent: AgentCalls, character: str) -> None:
    texts = {"title": character * 200, "description": character * 4000}
    uri = "file:///" + "u" * 300
    agent.data("save_resource", uri=uri, name="r" * 255, content="x" * 50_000, **texts)
    agent.data("save_resource", uri=f"{uri[:-1]}/", name="b" * 100, base64=encoded(PDF * 20), **texts)
    declared = [{"name": f"a{n}_{'y' * 90}", "description": character * 4000} for n in range(50)]
    tags = [f"{n:02}{'t' * 48}" for n in range(50)]
    agent.data("save_prompt", name="p" * 255, content="x" * 50_000, arguments=declared, tags=tags, **texts)
    agent.data("project", action="create", name="q" * 100)
    lists = {
        "labels": [f"{n:02}{character * 48}" for n in range(20)],
        "links": [f"{n:02}{character * 1990}" for n in range(50)],
    }
    fields = {"project": "q" * 100, "time_estimate": character * 50, "assignee": character * 200}
    new = {"title": character * 500, "notes": "x" * 50_000, **fields}
    blockers = [{"title": character * 500, "key": f"k{n}"} for n in range(99)]
    keys = [blocker["key"] for blocker in blockers]
    plan = [{**new, **lists, "parent": "p", "blocked_by": keys}, {"title": new["title"], "key": "p"}]
    added = agent.data("task_add", tasks=[*plan, *blockers])
    assert added["more"].endswith(" more were added")
    long = added["added"][0]["ref"]
    for _ in range(3):
        agent.data("task_update", ref=long, comment=character * 10_000)
    changes = [row["ref"] for row in agent.data("history", limit=4)["changes"]]
    for ref in (uri, "r" * 255, "b" * 100, "p" * 255, long, *changes):
        # The limit is checked by `AgentCalls.call`.
        blocks, described = agent.read(ref, max_tokens=1000)
        assert blocks
        assert described["kind"] in ("resource", "prompt", "task", "change")
        assert blocks[0]["type"] == ("resource_link" if ref == "b" * 100 else "text")
    _, described = agent.read("p" * 255, max_tokens=1000)
    assert len(described.get("arguments", [])) + described["more_arguments"] == 50


def test_a_resource_template_is_read_by_a_uri(agent: AgentCalls) -> None:
    agent.data("save_resource", uri="greet://{who}", content="Hello {{ who }}", mime_type="text/plain")
    blocks, described = agent.read("greet://ann")
    assert blocks == [{"type": "text", "text": "Hello ann"}]
    assert (described["ref"], described["mime_type"]) == ("greet://ann", "text/plain")
    blocks, _ = agent.read("dittybag://projects/default")
    assert '"resources":1' in blocks[0]["text"]


# Tasks


def test_tasks_are_added_together_and_undone_together(agent: AgentCalls) -> None:
    new = [
        {"title": "Call the bank", "due_date": "tomorrow", "priority": 5, "notes": "About the loan"},
        {"title": "Tidy up", "due_date": None, "project": "home"},
    ]
    agent.data("project", action="create", name="home")
    tomorrow = (datetime.now().astimezone().date() + timedelta(1)).isoformat()
    first, second = agent.data("task_add", tasks=new)["added"]
    assert first == {
        "ref": first["ref"],
        "title": "Call the bank",
        "priority": 5,
        "due_date": tomorrow,
        "status": "todo",
    }
    assert (second["title"], second["project"], second["priority"]) == ("Tidy up", "home", 3)
    blocks, described = agent.read(first["ref"])
    assert blocks == [{"type": "text", "text": "About the loan"}]
    assert (described["kind"], described["due_date"], described["status"]) == ("task", tomorrow, "todo")
    assert described.keys().isdisjoint({"energy", "time_estimate"})
    undone = agent.data("undo", ref=second["ref"])["undone"]
    assert [row["title"] for row in undone] == ["Call the bank", "Tidy up"]
    assert agent.data("task_list") == {"tasks": [], "total": 0}


def test_problems_of_all_tasks_are_reported_and_nothing_is_added(agent: AgentCalls) -> None:
    code, message = agent.error(
        "task_add", tasks=[{"title": "A"}, {"title": "B", "due_date": "someday"}, {"title": ""}]
    )
    assert code == "INVALID_INPUT"
    assert message.startswith("tasks[1]: due_date 'someday' is not a date; use for example tomorrow, ")
    assert message.endswith("; tasks[2]: Title must be between 1 and 500 characters")
    code, message = agent.error("task_add", tasks=[{"titel": "A"}, "B"])
    assert message == (
        "tasks[0].title is required; tasks[0].titel is not an argument; did you mean title?; "
        "tasks[1] must be an object, not a string"
    )
    assert agent.data("task_list")["total"] == 0


def test_an_error_is_never_long(agent: AgentCalls) -> None:
    bad = [{"title": "", "due_date": "someday", "notes": "\0"}] * 100
    code, message = agent.error("task_add", tasks=bad)
    assert (code, len(message)) == ("INVALID_INPUT", 4003)
    assert message.startswith("tasks[0]: due_date 'someday' is not a date")


def test_tasks_are_filtered_and_paged(agent: AgentCalls) -> None:
    agent.data("project", action="create", name="a")
    agent.data(
        "task_add",
        tasks=[
            {"title": "Low", "priority": 1, "project": "a"},
            {"title": "High", "priority": 5, "due_date": "2026-01-02", "notes": "n" * 1000},
            {"title": "Later", "due_date": "2026-03-01", "project": "a"},
        ],
    )

    def titles(**arguments: object) -> list[str]:
        return [row["title"] for row in agent.data("task_list", **arguments)["tasks"]]

    assert titles() == ["High", "Later", "Low"]
    assert titles(order="newest") == ["Later", "High", "Low"]
    assert titles(order="due") == ["High", "Later", "Low"]
    assert titles(project="a", priority=None) == ["Later", "Low"]
    assert titles(project="(no project)") == titles(due_by="2026-02-01") == ["High"]
    page = agent.data("task_list", limit=2)
    assert (page["more"], page["next_offset"], page["total"]) == ("1 more; offset=2", 2, 3)
    assert titles(offset=2) == ["Low"]


def test_a_filter_that_no_task_can_match_is_an_error_not_an_empty_list(agent: AgentCalls) -> None:
    agent.data("task_add", tasks=[{"title": "A", "labels": ["core"]}, {"title": "B", "labels": ["docs"]}])
    statuses = "status must be one of todo, doing, review, done, dropped"
    for status in ("open", "in_progress", "completed", "pending", "Done", "blocked"):
        assert agent.error("task_list", status=status) == ("INVALID_INPUT", statuses)
    assert agent.error("task_list", parent="task:999") == (
        "INVALID_INPUT",
        "parent: task 999 does not exist",
    )
    assert agent.error("task_list", label="CORE") == (
        "INVALID_INPUT",
        "no task has the label 'CORE'; labels are for example core",
    )
    assert agent.error("task_list", label="urgent")[1].endswith("labels are for example docs, core")
    assert agent.error("task_list", order="oldest")[0] == "INVALID_INPUT"
    # A label that only done tasks have is known.
    agent.data("task_done", ref="task:1")
    assert agent.data("task_list", label="core") == {"tasks": [], "total": 0}


# Lists


def test_a_search_without_words_lists_everything_last_changed_first(
    serve: StartServer, tmp_path: Path
) -> None:
    prompts = {"review": "Review this", "deploy": "Ship it"}
    write_twig_library(tmp_path / "home" / "libraries" / "team", prompts)
    agent = AgentCalls(serve("agent", env={"DITTYBAG_HOME": str(tmp_path / "home")}))
    agent.data("save_prompt", name="greet", content="Hello")
    agent.data("save_resource", uri="note://one", content="First")
    agent.data("task_add", tasks=[{"title": "A"}])
    agent.data("save_prompt", name="later", content="Bye")
    agent.data("save_prompt", name="greet", content="Hello again")
    everything = ["greet", "later", "task:1", "note://one", "team:deploy", "team:review"]
    for arguments in ({}, {"query": ""}, {"query": " "}, {"query": "*"}):
        listed = agent.data("search", **arguments)
        assert [hit["ref"] for hit in listed["hits"]] == everything
        assert listed["total"] == len(everything)
    assert listed["hits"][0]["passage"] == "Hello again"
    kinds = agent.data("search", kinds=["prompt", "library_prompt"])
    assert [hit["ref"] for hit in kinds["hits"]] == ["greet", "later", "team:deploy", "team:review"]
    for limit in range(1, len(everything)):
        hits = agent.data("search", limit=limit)["hits"]
        assert [hit["ref"] for hit in hits] == everything[:limit]
    paged: list[str] = []
    page = agent.data("search", limit=4)
    while "next_offset" in page:
        paged += [hit["ref"] for hit in page["hits"]]
        page = agent.data("search", limit=4, offset=page["next_offset"])
    assert [*paged, *(hit["ref"] for hit in page["hits"])] == everything
    assert "at most 20000 without a query" in agent.error("search", offset=20_001)[1]


def test_a_task_is_changed_completed_and_reopened(agent: AgentCalls) -> None:
    (task,) = agent.data("task_add", tasks=[{"title": "A", "due_date": "fri", "notes": "n"}])["added"]
    ref = task["ref"]
    changed = agent.data("task_update", ref=ref, status="done", title="B", due_date=None, notes=None)
    assert changed == {"ref": ref, "title": "B", "priority": 3, "status": "done"}
    assert agent.read_text(ref) == "n"
    assert agent.data("task_list", status="done")["total"] == 1
    changed = agent.data("task_update", ref=ref.removeprefix("task:"), status="todo", notes="")
    assert (changed["status"], agent.read(ref)[0]) == ("todo", [])
    # One call is one change.
    actions = [row["action"] for row in agent.data("history", ref=ref)["changes"]]
    assert actions == ["reopened", "completed", "created"]
    assert agent.error("task_update", ref=ref) == (
        "INVALID_INPUT",
        "Nothing to update: give at least one field",
    )


# History


def test_a_deleted_item_is_found_in_the_history_and_restored(agent: AgentCalls) -> None:
    agent.data("save_prompt", name="a", content="one")
    agent.data("save_resource", uri="file:///a.md", content="two")
    (task,) = agent.data("task_add", tasks=[{"title": "three"}])["added"]
    for ref, kind in (("a", "prompt"), ("file:///a.md", "resource"), (task["ref"], "task")):
        assert agent.data("delete", ref=ref)["kind"] == kind
        assert agent.error("read", ref=ref)[0] == "NOT_FOUND"
        assert [row["action"] for row in agent.data("history", ref=ref)["changes"]] == ["deleted", "created"]
        undone = agent.data("undo", ref=ref)
        assert [row["action"] for row in undone["undone"]] == ["deleted"]
        assert agent.read(ref)[1]["kind"] == kind
        agent.data("undo", ref=undone["by"])
        assert agent.error("read", ref=ref)[0] == "NOT_FOUND"
    assert agent.data("history", actor="nobody") == {"changes": []}


def test_a_change_is_shown_as_a_diff(agent: AgentCalls) -> None:
    agent.data("save_prompt", name="a", content="one\ntwo\n")
    agent.data("save_prompt", name="a", content="one\n2\n", title="A")
    change = agent.data("history", ref="a")["changes"][0]
    (block,), described = agent.read(change["ref"])
    assert block["text"].splitlines() == [
        "-title: a",
        "+title: A",
        "@@ content @@",
        "@@ -1,2 +1,2 @@",
        " one",
        "-two",
        "+2",
    ]
    assert (described["kind"], described["action"]) == ("change", "changed prompt A")


def test_later_changes_are_not_overwritten_without_force(agent: AgentCalls) -> None:
    agent.data("save_prompt", name="a", content="one")
    agent.data("save_prompt", name="a", content="two")
    later, first = (row["ref"] for row in agent.data("history", ref="a")["changes"])
    code, message = agent.error("undo", ref=first)
    assert code == "CONFLICT"
    assert f"The same items were changed later: {later}." in message
    agent.data("undo", ref=first, force=True)
    assert agent.error("read", ref="a")[0] == "NOT_FOUND"


def test_the_workspace_itself_cannot_be_undone(agent: AgentCalls) -> None:
    assert agent.error("undo", ref="change:1")[0] == "NOT_ALLOWED"
