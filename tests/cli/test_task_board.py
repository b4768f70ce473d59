"""`dittybag task board`: on terminals of two widths, in a pipe, as JSON, and while others change tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cli_runner import data, dittybag
from tests.cli.pseudo_terminal import run_in_terminal, strip_colours

TITLE = "Sew a patch on the sail that was torn in the storm of last week"
UNICODE = {"PYTHONIOENCODING": "utf-8"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    dittybag(tmp_path, "project", "create", "ship")
    for arguments in [
        (TITLE, "-P", "5", "-d", "yesterday", "-p", "ship", "-l", "sails", "--assignee", "ann"),
        ("Set sail", "--blocked-by", "1"),
        ("Look \u202e", "--status", "done"),
        ("[bold]Row", "--assignee", "bob"),
    ]:
        dittybag(tmp_path, "task", "add", *arguments)
    dittybag(tmp_path, "task", "claim", "4", "--as", "rower")
    return tmp_path


def test_a_board_fits_the_terminal(home: Path) -> None:
    wide = run_in_terminal(home, "task", "board", columns=160, variables=UNICODE)
    assert "\x1b[1;38;5;196m!5" in wide
    assert "\x1b[38;5;196mdue yesterday (overdue)" in wide
    assert "\u202e" not in wide
    lines = strip_colours(wide).splitlines()
    assert all(len(line) <= 160 for line in lines)
    titles = ("Ready 1", "Doing 1", "Blocked 1", "Review 0", "Done 1")
    assert [lines[0].index(title) for title in titles] == [3, 35, 67, 99, 131]
    first = " ".join(line[2:30].strip() for line in lines[1:-1]).strip()
    assert first == f"1 {TITLE} !5 · due yesterday (overdue) · ship · ann · #sails"
    assert "4 [bold]Row" in lines[1]
    assert "!3 · rower" in lines[2]
    assert "!3 · waits for 1" in lines[2]

    narrow = run_in_terminal(home, "task", "board", columns=80, variables={**UNICODE, "NO_COLOR": "1"})
    assert "\x1b" not in narrow
    lines = narrow.splitlines()
    assert all(len(line) == 80 for line in lines)
    heads = [line.split("─")[1].strip() for line in lines if line.startswith("╭")]
    assert heads == ["Ready 1", "Blocked 1"]
    assert "Review" not in narrow


def test_a_board_is_plain_in_a_pipe_and_can_be_filtered(home: Path) -> None:
    piped = dittybag(home, "task", "board").stdout
    assert "\x1b" not in piped
    assert piped.split("\n\n")[1:3] == [
        "Doing (1)\n  4  !3  [bold]Row  (rower)",
        "Blocked (1)\n  2  !3  Set sail",
    ]
    columns = data(dittybag(home, "task", "board", "--json"))["columns"]
    assert [task["shared"] for column in columns for task in column["tasks"] if task["id"] in (1, 2)] == [
        True,
        False,
    ]
    assert all(type(task["shared"]) is bool for column in columns for task in column["tasks"])
    assert [(column["column"], column["total"]) for column in columns] == [
        *(("ready", 1), ("doing", 1), ("blocked", 1), ("review", 0), ("done", 1))
    ]
    [first] = columns[0]["tasks"]
    assert (first["id"], first["title"], first["overdue"], first["labels"]) == (1, TITLE, True, ["sails"])
    for options in (("-p", "ship"), ("-l", "sails"), ("--assignee", "ann")):
        found = data(dittybag(home, "task", "board", *options, "--json"))["columns"]
        assert [task["id"] for column in found for task in column["tasks"]] == [1]
    assert "--watch requires a terminal" in dittybag(home, "task", "board", "--watch", status=2).stderr


def test_a_watched_board_follows_other_processes_until_q_or_ctrl_c(home: Path) -> None:
    def complete(screen: str) -> str:
        assert "Done 1" in screen
        dittybag(home, "task", "done", "1")
        return ""

    watched = ("task", "board", "--watch")
    screen = run_in_terminal(
        home, *watched, answers=[("q quits", complete), ("Done 2", "q")], columns=160, variables=UNICODE
    )
    assert screen.startswith("\x1b[?1049h")
    assert "Ready 1" in screen[screen.rindex("Done 2") - 2000 :]
    assert "Blocked 0" in screen
    # The terminal has its screen and its cursor again.
    assert "\x1b[?1049l" in screen[-40:]
    assert "\x1b[?25h" in screen[-40:]
    run_in_terminal(home, *watched, answers=[("q quits", "\x03")])
