"""`dittybag task`, on a terminal and in scripts."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.cli.cli_runner import data, dittybag, failure
from tests.cli.pseudo_terminal import run_in_terminal

FAR_FUTURE = "2999-12-31"
LONG_AGO = "2001-01-01"


def list_ids(home: Path, *arguments: str) -> list[int]:
    return [task["id"] for task in data(dittybag(home, "task", "list", *arguments, "--json"))["tasks"]]


def show_task(home: Path, id: int) -> dict[str, Any]:
    task: dict[str, Any] = data(dittybag(home, "task", "show", str(id), "--json"))
    return task


def test_a_task_is_added_shown_listed_edited_done_reopened_and_deleted(tmp_path: Path) -> None:
    dittybag(tmp_path, "project", "create", "auth")
    assert dittybag(tmp_path, "task", "add", "Write tests", "-P", "4", "-p", "auth").stdout == (
        "Added task 1 'Write tests'\n"
    )
    added = dittybag(
        tmp_path, "task", "add", "Call", "the", "bank", "-e", "light", "--estimate", "15min", "-d", FAR_FUTURE
    )
    assert added.stdout == f"Added task 2 'Call the bank', due {FAR_FUTURE}\n"
    assert dittybag(tmp_path, "task", "list").stdout == (
        "id  priority  title          project  estimate  due\n"
        " 1         4  Write tests    auth\n"
        f" 2         3  Call the bank           15min     {FAR_FUTURE}\n"
    )
    assert dittybag(tmp_path, "task", "edit", "2", "--title", "Call them", "-P", "5").stdout == (
        f"Updated task 2 'Call them', due {FAR_FUTURE}\n"
    )
    assert dittybag(tmp_path, "task", "done", "1", "2").stdout == (
        "Completed task 1 'Write tests'\nCompleted task 2 'Call them'\n"
    )
    empty = dittybag(tmp_path, "task", "list")
    assert (empty.stdout, empty.stderr) == ("", "No tasks found\n")
    assert dittybag(tmp_path, "task", "done", "1").stdout == "Already completed: task 1 'Write tests'\n"
    reopened = dittybag(tmp_path, "task", "edit", "1", "--status", "todo")
    assert reopened.stdout == "Updated task 1 'Write tests'\n"
    deleted = dittybag(tmp_path, "task", "delete", "1", "2")
    assert deleted.stdout == "Deleted task 1 'Write tests'\nDeleted task 2 'Call them'\n"
    assert deleted.stderr == "hint: to restore them, run: dittybag undo\n"
    assert list_ids(tmp_path, "--include-done") == []


def test_options_set_and_clear_the_fields_of_a_task(tmp_path: Path) -> None:
    dittybag(tmp_path, "project", "create", "auth")
    dittybag(tmp_path, "task", "add", "First")
    added = data(
        dittybag(
            tmp_path,
            *("task", "add", "Do it", "-P", "1", "-p", "auth", "-e", "deep", "--estimate", "2hr"),
            *("--notes", "-", "--due", LONG_AGO, "--assignee", "ann", "-l", "one", "--label", "two"),
            *("--link", "https://example.com", "--parent", "1", "--comment", "Begin here", "--json"),
            stdin="Line 1\nLine 2\n",
            variables={"DITTYBAG_ACTOR": "bob"},
        )
    )
    [comment] = added["comments"]
    assert (comment["author"], comment["text"]) == ("bob", "Begin here")
    fields: dict[str, tuple[Any, Any]] = {
        "project": ("auth", None),
        "shared": (True, False),
        "priority": (1, 1),
        "energy": ("deep", "deep"),
        "time_estimate": ("2hr", "2hr"),
        "notes": ("Line 1\nLine 2\n", None),
        "due_date": (LONG_AGO, None),
        "overdue": (True, False),
        "assignee": ("ann", None),
        "labels": (["one", "two"], []),
        "links": (["https://example.com"], []),
        "parent": (1, None),
    }
    assert {name: added[name] for name in fields} == {name: value for name, (value, _) in fields.items()}
    shown = show_task(tmp_path, 2)
    assert (shown["parent_task"], shown["claim"]) == ({"id": 1, "title": "First", "status": "todo"}, None)
    [listed] = data(dittybag(tmp_path, "task", "list", "-p", "auth", "--json"))["tasks"]
    assert {name: listed[name] for name in added} == added
    empty = ("-p", "", "-n", "", "-d", "none", "--assignee", "", "-l", "", "--link", "", "--parent", "")
    cleared = data(dittybag(tmp_path, "task", "edit", "2", *empty, "--blocked-by", "", "--json"))
    assert {name: cleared[name] for name in fields} == {name: value for name, (_, value) in fields.items()}
    [done] = data(dittybag(tmp_path, "task", "done", "2", "2", "--json"))["tasks"]
    assert (done["completed"], done["completed_at"] is None, done["version"]) == (True, False, 3)
    reopened = data(dittybag(tmp_path, "task", "edit", "2", "--status", "todo", "--json"))
    assert (reopened["completed"], reopened["completed_at"], reopened["version"]) == (False, None, 4)


def test_due_dates_can_be_words(tmp_path: Path) -> None:
    before = datetime.now().astimezone()
    due = data(dittybag(tmp_path, "task", "add", "x", "-d", "tomorrow", "--json"))["due_date"]
    # The test may run across midnight.
    assert due in {f"{moment + timedelta(1):%Y-%m-%d}" for moment in (before, datetime.now().astimezone())}
    exact = data(dittybag(tmp_path, "task", "add", "x", "-d", "2999-03-01T17:00:00Z", "--json"))
    assert exact["due_date"] == "2999-03-01T17:00:00Z"


def test_lists_are_filtered_and_limited(tmp_path: Path) -> None:
    for project in ("a", "b"):
        dittybag(tmp_path, "project", "create", project)
    for arguments in [
        ("one", "-P", "2", "-p", "a", "-d", LONG_AGO),
        ("two", "-P", "5", "-p", "a", "-d", FAR_FUTURE),
        ("three", "-p", "b", "-d", "today"),
        ("four", "-d", LONG_AGO),
        ("five", "-P", "5", "-d", "2999-12-30T23:00:00Z"),
    ]:
        dittybag(tmp_path, "task", "add", *arguments)
    dittybag(tmp_path, "task", "done", "4")
    assert not show_task(tmp_path, 4)["overdue"]
    assert list_ids(tmp_path) == [5, 2, 3, 1]
    assert list_ids(tmp_path, "-p", "a") == [2, 1]
    assert list_ids(tmp_path, "-P", "5") == [5, 2]
    assert list_ids(tmp_path, "-P", "5", "-P", "2") == [5, 2, 1]
    assert list_ids(tmp_path, "--search", "T") == [2, 3]
    assert list_ids(tmp_path, "--search", "four", "--include-done") == [4]
    assert list_ids(tmp_path, "--sort", "title") == [5, 1, 3, 2]
    assert list_ids(tmp_path, "--sort", "created", "--reverse") == [1, 2, 3, 5]
    assert list_ids(tmp_path, "--sort", "due", "--include-done") == [4, 1, 3, 5, 2]
    assert list_ids(tmp_path, "-P", "5", "--project", "a") == [2]
    assert list_ids(tmp_path, "--status", "done") == [4]
    assert list_ids(tmp_path, "--include-done") == [5, 2, 4, 3, 1]
    assert list_ids(tmp_path, "--overdue") == [1]
    assert list_ids(tmp_path, "--due", "tomorrow") == [3, 1]
    assert list_ids(tmp_path, "--due", "2999-12-30") == [5, 3, 1]
    assert list_ids(tmp_path, "--due", "2999-12-30", "--include-done") == [5, 4, 3, 1]
    assert list_ids(tmp_path, "--due", FAR_FUTURE) == [5, 2, 3, 1]
    assert list_ids(tmp_path, "--limit", "2") == [5, 2]
    assert list_ids(tmp_path, "--limit", "2", "--all") == [5, 2, 3, 1]
    cut = dittybag(tmp_path, "task", "list", "--limit", "3")
    assert len(cut.stdout.splitlines()) == 4
    assert cut.stderr == "hint: there are more tasks; use --all to see them, or --limit\n"
    whole = dittybag(tmp_path, "task", "list", "--limit", "4")
    assert (len(whole.stdout.splitlines()), whole.stderr) == (5, "")
    result = dittybag(tmp_path, "task", "list", "--status", "done").stdout.splitlines()
    assert "status" in result[0].split()
    assert "done" in result[1].split()


def test_fields_are_found_in_the_title_unless_it_is_plain(tmp_path: Path) -> None:
    dittybag(tmp_path, "project", "create", "home")
    line = f"Buy  milk !4 @home due {FAR_FUTURE}"
    found = dittybag(tmp_path, "task", "add", line)
    about = f"priority 4, project home, due {FAR_FUTURE}"
    assert (found.stdout, found.stderr) == (f"Added task 1 'Buy milk' ({about})\n", "")
    assert show_task(tmp_path, 1)["shared"]
    plain = data(dittybag(tmp_path, "task", "add", "--plain", line, "-P", "2", "--json"))
    assert (plain["title"], plain["priority"], plain["project"], plain["due_date"]) == (line, 2, None, None)
    # Options take precedence.
    mixed = data(
        dittybag(tmp_path, "task", "add", "Call !4", "@home", "due", "fri", "-P", "5", "-d", "none", "--json")
    )
    assert (mixed["title"], mixed["priority"], mixed["project"]) == ("Call", 5, "home")
    assert mixed["due_date"] is None
    unknown = dittybag(tmp_path, "task", "add", "Ask @ann")
    assert unknown.stdout == "Added task 4 'Ask' (project ann)\n"
    assert unknown.stderr == (
        "note: 'ann' is not a project: only you see the task\nnote: to keep @ann in the title, use --plain\n"
    )
    # Without fields, the title stays as it is.
    odd = 'Mail "a  b" to x@y.example, 5!  due to rain #1'
    assert data(dittybag(tmp_path, "task", "add", odd, "--json"))["title"] == odd
    day = datetime.now().astimezone() + timedelta(3)
    shown = run_in_terminal(tmp_path, "task", "add", f"Soon due {day:%Y-%m-%d}")
    assert f"(due {day:%a} {day.day} {day:%b}" in shown


def test_tasks_are_named_by_title(tmp_path: Path) -> None:
    for title in ("Write tests", "Write the docs", "Rewrite", "Café  menu"):
        dittybag(tmp_path, "task", "add", title)
    assert dittybag(tmp_path, "task", "done", "write TESTS").stdout == "Completed task 1 'Write tests'\n"
    assert data(dittybag(tmp_path, "task", "show", "cafe menu", "--json"))["id"] == 4
    assert data(dittybag(tmp_path, "task", "edit", "docs", "--comment", "Soon", "--json"))["id"] == 2
    # An open task comes before a completed one.
    assert data(dittybag(tmp_path, "task", "edit", "write t", "-P", "4", "--json"))["id"] == 2
    several = failure(dittybag(tmp_path, "task", "done", "rite", "--json", status=4))
    assert several["message"] == "'rite' matches several items: 3 'Rewrite', 2 'Write the docs'"
    assert several["hints"] == ["give more of the title, or the number of the task"]
    assert "No task is called 'sing'" in dittybag(tmp_path, "task", "next", "sing", status=3).stderr
    assert "Rewrite" in dittybag(tmp_path, "task", "graph", "Rewrite").stdout
    assert dittybag(tmp_path, "task", "delete", "2", "café  MENU").stdout.count("Deleted") == 2


def test_several_words_are_one_title_first(tmp_path: Path) -> None:
    for title in ("Call Anna", "Buy bread", "Call the bank", "Bread"):
        dittybag(tmp_path, "task", "add", title)
    assert dittybag(tmp_path, "task", "done", "call", "the", "bank").stdout.startswith("Completed task 3 ")
    # Neither one title, nor whole titles.
    several = failure(dittybag(tmp_path, "task", "done", "anna", "buy", "--json", status=3))
    assert several["message"] == "No task is called 'anna buy'"
    assert several["hints"] == [
        "similar: 1 'Call Anna', 2 'Buy bread'; to name several tasks, give their numbers"
    ]
    assert failure(dittybag(tmp_path, "task", "done", "1", "rope", "--json", status=3))["message"] == (
        "No task is called '1 rope'"
    )
    assert list_ids(tmp_path) == [1, 2, 4]
    assert dittybag(tmp_path, "task", "done", "Call Anna", "bread", "2").stdout.count("Completed") == 3


def test_show_prints_all_fields(tmp_path: Path) -> None:
    dittybag(tmp_path, "project", "create", "auth")
    dittybag(tmp_path, "task", "add", "Do it", "-p", "auth", "-d", LONG_AGO, "-n", "Line 1\nLine 2")
    lines = dittybag(tmp_path, "task", "show", "1").stdout.splitlines()
    assert lines[0] == "1  Do it"
    about = dict(re.split(r"  +", line, maxsplit=1) for line in lines[1 : lines.index("")])
    assert set(about) == {"project", "status", "priority", "due", "created", "updated"}
    assert (about["project"], about["due"]) == ("auth", f"{LONG_AGO} (overdue)")
    assert lines[-2:] == ["Line 1", "Line 2"]


def test_a_terminal_shows_priorities_dates_and_status_in_colour(tmp_path: Path) -> None:
    for title, due in [("Late", "yesterday"), ("Now", "today"), ("Soon", "tomorrow"), ("Past", LONG_AGO)]:
        dittybag(tmp_path, "task", "add", title, "-d", due, "-P", "5")
    dittybag(tmp_path, "task", "add", "Odd \u202e", "-n", "\x1b[31m", "-l", "one", "-P", "1")
    dittybag(tmp_path, "task", "done", "4")
    screen = run_in_terminal(tmp_path, "task", "list", "--include-done")
    lines = [
        next(line for line in screen.splitlines() if title in line)
        for title in ("title", "Late", "Now", "Soon", "Past", "Odd")
    ]
    assert lines[0].startswith("\x1b[1m")
    for line in lines[1:4]:
        assert "\x1b[38;5;196m\x1b[1m5\x1b[0m" in line
    assert "\x1b[38;5;196myesterday (overdue)\x1b[0m" in lines[1]
    assert "\x1b[38;5;130mtoday\x1b[0m" in lines[2]
    assert "  tomorrow  " in lines[3]
    assert ("\x1b[38;5;243mPast\x1b[0m" in lines[4], "\x1b[38;5;28mdone\x1b[0m" in lines[4]) == (True, True)
    assert "\x1b[38;5;243m1 Jan 2001\x1b[0m" in lines[4]
    assert ("\u202e" in lines[5], "\x1b[38;5;30mone\x1b[0m" in lines[5]) == (False, True)
    assert "\x1b" not in run_in_terminal(tmp_path, "task", "list", variables={"NO_COLOR": "1"})
    assert "\x1b[31m" not in run_in_terminal(tmp_path, "task", "show", "5")
    assert "\x1b[38;5;196m" in run_in_terminal(tmp_path, "task", "show", "1")
