"""`dittybag history`, `undo` and `restore` of a change."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.cli.cli_runner import data, dittybag, failure
from tests.cli.pseudo_terminal import run_in_terminal, strip_colours


def changes(home: Path, *arguments: str) -> list[tuple[Any, ...]]:
    """Return the rows of `history`: sequence number, actor, action, kind and name, newest first."""
    rows = data(dittybag(home, "history", *arguments, "--json"))["changes"]
    return [(row["change"], row["actor"], row["action"], row["kind"], row["name"]) for row in rows]


def prompt_content(home: Path, name: str) -> str:
    return dittybag(home, "prompt", "show", name).stdout


def as_actor(home: Path, actor: str, *arguments: str) -> None:
    dittybag(home, *arguments, variables={"DITTYBAG_ACTOR": actor})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A prompt created by Ann and updated by Bob, and a task."""
    as_actor(tmp_path, "ann", "prompt", "add", "review", "one\ntwo\nthree\n", "-t", "code")
    as_actor(tmp_path, "bob", "prompt", "edit", "review", "one\n2\nthree\n", "--title", "A review")
    as_actor(tmp_path, "ann", "task", "add", "Write tests")
    return tmp_path


# history


def test_history_lists_every_change_newest_first(home: Path) -> None:
    assert changes(home) == [
        (4, "ann", "create", "task", "Write tests"),
        (3, "bob", "update", "prompt", "A review"),
        (2, "ann", "create", "prompt", "review"),
        (1, "dittybag", "create", "project", "default"),
    ]
    lines = dittybag(home, "history").stdout.splitlines()
    assert lines[0].split() == ["change", "when", "actor", "action", "item", "project"]
    assert lines[2].split()[-6:] == ["bob", "changed", "prompt", "A", "review", "default"]


def test_history_is_filtered(home: Path) -> None:
    assert [row[0] for row in changes(home, "--actor", "bob")] == [3]
    assert [row[0] for row in changes(home, "--kind", "task")] == [4]
    assert [row[0] for row in changes(home, "--before", "4", "--limit", "2")] == [3, 2]
    assert [row[0] for row in changes(home, "--since", "1h")] == [4, 3, 2, 1]
    assert changes(home, "--since", "2999-01-01") == []
    dittybag(home, "project", "create", "other")
    assert [row[0] for row in changes(home, "-p", "other")] == [5, 4]


@pytest.mark.parametrize("name", ["review", "A review"])
def test_history_of_an_entity_by_any_of_its_names(home: Path, name: str) -> None:
    assert [row[0] for row in changes(home, name)] == [3, 2]


def test_history_of_an_entity_by_its_id_applies_every_filter_before_the_limit(home: Path) -> None:
    (row,) = data(dittybag(home, "history", "--actor", "bob", "--json"))["changes"]
    for title in ("Two", "Three"):
        as_actor(home, "ann", "prompt", "edit", "review", "--title", title)
    history = ("history", row["id"], "--limit", "2", "--json")
    for more, expected in (
        (("--actor", "bob"), [3]),
        (("--actor", "ann"), [6, 5]),
        (("--actor", "ann", "--before", "5"), [2]),
        (("--actor", "bob", "--kind", "prompt", "--since", "1h", "--project", "default"), [3]),
        (("--actor", "bob", "--kind", "task"), []),
        (("--since", "2999-01-01"), []),
    ):
        found = data(dittybag(home, *history, *more))["changes"]
        assert [change["change"] for change in found] == expected, more


def test_history_of_a_deleted_entity_by_its_id_or_title(home: Path) -> None:
    prompt_id = data(dittybag(home, "prompt", "show", "review", "--json"))["id"]
    dittybag(home, "prompt", "delete", "review")
    assert [row[2] for row in changes(home, prompt_id)] == ["delete", "update", "create"]
    assert [row[2] for row in changes(home, "A review")] == ["delete", "update", "create"]


def test_history_hints_at_older_changes_and_reports_no_match(home: Path) -> None:
    assert dittybag(home, "history", "--limit", "2").stderr == "hint: for older changes, use --before 3\n"
    result = dittybag(home, "history", "nothing-like-it")
    assert (result.stdout, result.stderr) == ("", "No matching changes\n")


# history --diff


def test_diff_shows_the_changed_fields(home: Path) -> None:
    lines = dittybag(home, "history", "3", "--diff").stdout.splitlines()
    assert lines[0] == "prompt A review"
    assert "-title: review" in lines
    assert "+title: A review" in lines
    assert lines[-4:] == [" one", "-two", "+2", " three"]
    fields = data(dittybag(home, "history", "3", "--diff", "--json"))["fields"]
    assert fields["content"] == {"before": "one\ntwo\nthree\n", "after": "one\n2\nthree\n"}


def test_diff_of_resources(home: Path) -> None:
    dittybag(home, "resource", "add", "-", "--name", "note", stdin="first\nsame\n")
    dittybag(home, "resource", "edit", "note", "-", stdin="second\nsame\n")
    assert dittybag(home, "history", "6", "--diff").stdout.splitlines()[-3:] == ["-first", "+second", " same"]
    (home / "picture.png").write_bytes(bytes(range(256)))
    dittybag(home, "resource", "add", str(home / "picture.png"))
    assert "(256 bytes, SHA-256 " in dittybag(home, "history", "7", "--diff").stdout


def test_diff_shows_the_fields_of_a_task_readably(home: Path) -> None:
    as_actor(home, "ann", "task", "edit", "1", "-l", "ci", "-l", "web", "--comment", "Two\nlines")
    dittybag(home, "task", "add", "Blocker")
    changed = ("--status", "doing", "--assignee", "agent 7", "--blocked-by", "2")
    more = ("-l", "", "--link", "https://a.example/", "--comment", "More")
    as_actor(home, "ann", "task", "edit", "1", *changed, *more)
    added = dittybag(home, "history", "5", "--diff").stdout
    time = data(dittybag(home, "history", "--limit", "1", "--json"))["changes"][0]["at"]
    [first] = re.findall(r"\+(20\S+Z) ann:", added)
    assert added.splitlines()[2:] == [
        "+labels: ci, web",
        "@@ comments @@",
        "@@ -0,0 +1,3 @@",
        f"+{first} ann:",
        "+Two",
        "+lines",
    ]
    # Long texts come last, so that no other field seems to be a part of them.
    assert dittybag(home, "history", "7", "--diff").stdout.splitlines()[2:] == [
        "-status: todo",
        "+status: doing",
        "+assignee: agent 7",
        "-labels: ci, web",
        "+blocked_by: 2",
        "+links: https://a.example/",
        "@@ comments @@",
        "@@ -1,3 +1,6 @@",
        f" {first} ann:",
        " Two",
        " lines",
        "+",
        f"+{time} ann:",
        "+More",
    ]


def test_control_characters_in_a_diff_are_replaced(home: Path) -> None:
    dittybag(home, "prompt", "add", "evil", "a\n\x1b[2Jb\n")
    assert "\x1b[2J" not in run_in_terminal(home, "history", "5", "--diff")


# undo


def test_undo_reverts_the_last_change_and_then_itself(home: Path) -> None:
    output = dittybag(home, "undo", "--yes").stdout
    assert "delete task Write tests" in output
    assert "Undid 1 change" in output
    assert data(dittybag(home, "task", "list", "--json"))["tasks"] == []
    dittybag(home, "undo", "--yes")
    assert [task["title"] for task in data(dittybag(home, "task", "list", "--json"))["tasks"]] == [
        "Write tests"
    ]


def test_undo_of_several_changes(home: Path) -> None:
    shown = data(dittybag(home, "undo", "--last", "2", "--yes", "--json"))
    assert shown["undone"] is True
    assert [(row["effect"], row["name"]) for row in shown["entities"]] == [
        ("delete", "Write tests"),
        ("revert", "A review"),
    ]
    assert prompt_content(home, "review") == "one\ntwo\nthree\n"
    # The undo is one batch, so one more undo reverts all of it.
    dittybag(home, "undo", "--yes")
    assert prompt_content(home, "review") == "one\n2\nthree\n"


def test_undo_of_all_changes_by_an_actor(home: Path) -> None:
    as_actor(home, "bob", "prompt", "add", "bad", "Bad.")
    as_actor(home, "bob", "project", "create", "worse")
    as_actor(home, "bob", "prompt", "add", "worst", "Worst.", "-p", "worse")
    as_actor(home, "bob", "prompt", "delete", "review")
    shown = data(dittybag(home, "undo", "--actor", "bob", "--since", "1h", "--yes", "--json"))
    assert {(row["effect"], row["kind"]) for row in shown["entities"]} == {
        ("delete", "prompt"),
        ("delete", "project"),
        ("revert", "prompt"),
    }
    assert prompt_content(home, "review") == "one\ntwo\nthree\n"
    assert [row["name"] for row in data(dittybag(home, "project", "list", "--json"))["projects"]] == [
        "default"
    ]
    assert [task["title"] for task in data(dittybag(home, "task", "list", "--json"))["tasks"]] == [
        "Write tests"
    ]


def test_later_changes_are_overwritten_only_with_force(home: Path) -> None:
    as_actor(home, "ann", "prompt", "edit", "review", "--description", "Mine")
    error = failure(dittybag(home, "undo", "3", "--yes", "--json", status=4))
    assert error["code"] == "LATER_CHANGES"
    plan = data(dittybag(home, "undo", "3", "--dry-run", "--json"))
    assert (plan["undone"], [row["change"] for row in plan["overwrites"]]) == (False, [5])
    assert prompt_content(home, "review") == "one\n2\nthree\n"
    dittybag(home, "undo", "3", "--yes", "--force")
    assert prompt_content(home, "review") == "one\ntwo\nthree\n"
    # A change by Ann between two changes by Bob is also a later change.
    as_actor(home, "bob", "prompt", "edit", "review", "--description", "Mine")
    as_actor(home, "ann", "prompt", "edit", "review", "--description", "No, mine")
    as_actor(home, "bob", "prompt", "edit", "review", "--description", "Mine again")
    plan = data(dittybag(home, "undo", "--actor", "bob", "--since", "1h", "--dry-run", "--json"))
    assert 8 in [row["change"] for row in plan["overwrites"]]


def prompt_names(home: Path, project: str) -> set[str]:
    return {row["name"] for row in data(dittybag(home, "prompt", "list", "-p", project, "--json"))["prompts"]}


def test_undo_in_one_project_leaves_others_alone(home: Path) -> None:
    dittybag(home, "project", "create", "mine")
    dittybag(home, "prompt", "add", "kept", "Text.", "-p", "mine")
    dittybag(home, "prompt", "add", "gone", "Text.")
    dittybag(home, "prompt", "add", "too", "Text.", "-p", "mine")
    dittybag(home, "undo", "-p", "default", "--yes")
    assert prompt_names(home, "mine") == {"kept", "too"}
    assert prompt_names(home, "default") == {"review"}


def test_undo_of_too_many_changes_is_refused_as_a_whole(home: Path) -> None:
    """Changes that are left out would look as if they were undone."""
    with closing(apsw.Connection(str(home / "default.db"))) as connection:
        connection.execute(
            """WITH RECURSIVE more (seq) AS (SELECT 5 UNION ALL SELECT seq + 1 FROM more WHERE seq < 100003)
               INSERT INTO changes (seq, at, actor, action, kind, entity, project, before, after)
               SELECT more.seq, at, 'bulk', action, kind, entity || '-' || more.seq, project, before, after
               FROM more, changes WHERE changes.seq = 4"""
        )
    for arguments in (("--dry-run",), ("--yes", "--force")):
        refused = failure(dittybag(home, "undo", "--since", "1h", *arguments, "--json", status=4))
        assert refused["code"] == "TOO_MANY_CHANGES"
        assert "100,002 changes would be undone, but at most 100,000" in refused["message"]
        assert "of one actor" in refused["message"]
    assert changes(home, "--limit", "1")[0][0] == 100_003
    assert data(dittybag(home, "undo", "--since", "1h", "--actor", "ann", "--dry-run", "--json"))["entities"]


def test_undo_without_a_terminal_requires_yes(home: Path) -> None:
    result = dittybag(home, "undo", status=1)
    assert "--yes" in result.stderr
    assert len(changes(home)) == 4


def test_undo_without_anything_to_undo_fails(tmp_path: Path) -> None:
    assert failure(dittybag(tmp_path, "undo", "--yes", "--json", status=3))["code"] == "NOTHING_TO_UNDO"
    dittybag(tmp_path, "undo", "77", "--yes", status=3)


@pytest.mark.parametrize(("typed", "status", "left"), [("y\n", 0, 0), ("n\n", 1, 1), ("\n", 1, 1)])
def test_undo_asks_for_confirmation_on_a_terminal(home: Path, typed: str, status: int, left: int) -> None:
    screen = run_in_terminal(home, "undo", answers=[("Undo these changes?", typed)], status=status)
    assert "delete task Write tests" in strip_colours(screen)
    assert len(data(dittybag(home, "task", "list", "--json"))["tasks"]) == left


def test_history_has_colours_only_on_a_terminal(home: Path) -> None:
    assert "\x1b[38;5;28mcreated" in run_in_terminal(home, "history")
    assert "\x1b" not in dittybag(home, "history").stdout


# restore


def test_restore_returns_an_entity_to_an_earlier_state(home: Path) -> None:
    dittybag(home, "prompt", "delete", "review")
    assert (
        dittybag(home, "restore", "2").stdout == "Prompt 'review' was restored to its state after change 2\n"
    )
    assert prompt_content(home, "review") == "one\ntwo\nthree\n"
    dittybag(home, "restore", "3")
    assert prompt_content(home, "review") == "one\n2\nthree\n"
    assert data(dittybag(home, "restore", "5", "--json"))["deleted"] is True
    dittybag(home, "prompt", "show", "review", status=3)
    dittybag(home, "undo", "--yes")
    assert prompt_content(home, "review") == "one\n2\nthree\n"
