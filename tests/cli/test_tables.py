"""Tables on terminals of several widths, and the dates, paths and colours in them."""

from __future__ import annotations

import time
from pathlib import Path

from dittybag.cli import colours
from dittybag.domain.display import format_when
from tests.cli.cli_runner import dittybag
from tests.cli.pseudo_terminal import run_in_terminal, strip_colours

NAME = "a-prompt-with-a-name-that-is-nearly-as-long-as-a-narrow-terminal"
TITLE = "Find out why the import of a large folder stops half-way, and say so in its message"


def screen(home: Path, columns: int, *arguments: str) -> list[str]:
    shown = run_in_terminal(home, *arguments, columns=columns, variables={"HOME": str(home)})
    lines = strip_colours(shown).splitlines()
    assert all(len(line) <= columns for line in lines)
    return lines


def test_a_wide_terminal_shows_more_and_a_narrow_one_never_cuts_names(tmp_path: Path) -> None:
    about = "What a prompt of this length is good for, in more words than fit into a terminal of 80 columns"
    fields = ("--title", "A title", "--description", about, "--tag", "sails")
    dittybag(tmp_path, "prompt", "add", NAME, "-", *fields, stdin="{{ x }}")
    narrow, wide = screen(tmp_path, 80, "prompt", "list"), screen(tmp_path, 160, "prompt", "list")
    assert narrow[0].split() == ["name", "title", "tags"]
    assert narrow[1].split() == [NAME, "A", "title", "sails"]
    assert wide[0].split() == ["name", "title", "tags", "updated", "description", "arguments"]
    assert f"{NAME}  A title  sails  just now  What a prompt of this length" in wide[1]
    # A name that is too long for the terminal continues on the next line.
    over = run_in_terminal(tmp_path, "prompt", "list", columns=40)
    assert NAME in over
    assert "…" not in over

    dittybag(tmp_path, "project", "create", "importers")
    dittybag(tmp_path, "task", "add", TITLE, "-p", "importers", "-d", "yesterday", "-l", "bug", "-P", "5")
    dittybag(tmp_path, "task", "add", "x", "--status", "doing", "--assignee", "somebody", "--estimate", "2h")
    narrow, wide = screen(tmp_path, 80, "task", "list"), screen(tmp_path, 160, "task", "list")
    assert narrow[0].split() == ["id", "pri", "title", "project", "status", "due"]
    assert wide[0].split() == [*narrow[0].split()[:-1], "assignee", "estimate", "due", "labels", "updated"]
    titles = [line[narrow[0].index("title") : narrow[0].index("project")].strip() for line in narrow[1:-1]]
    assert " ".join(titles) == TITLE
    assert "yesterday (overdue)" in narrow[1]
    assert dittybag(tmp_path, "task", "list").stdout.splitlines()[1].split(TITLE)[0].split() == ["1", "5"]
    history = screen(tmp_path, 80, "history", "--limit", "2")
    assert TITLE in " ".join(" ".join(history[1:]).replace("importers", "").split())

    folder = tmp_path / "code"
    folder.mkdir()
    dittybag(tmp_path, "project", "link", str(folder), "-p", "importers")
    assert "  ~/code  " in screen(tmp_path, 100, "project", "list")[-1]
    assert str(folder) in dittybag(tmp_path, "project", "list").stdout


def test_times_are_relative_within_a_week_and_dates_beyond() -> None:
    day, hour = 86_400_000_000, 3_600_000_000
    now = int(time.mktime((2026, 11, 18, 12, 0, 0, 0, 0, -1))) * 1_000_000
    for moment, words in {
        now: "just now",
        now - 2 * hour: "2 hours ago",
        now - 6 * day: "6 days ago",
        now - 8 * day: "10 Nov",
        now - 400 * day: "14 Oct 2025",
        now + 3 * day: "in 3 days",
        now + 8 * day: "26 Nov",
        now + 60 * day: "17 Jan 2027",
    }.items():
        assert format_when(moment, now) == words


def test_colours_are_readable_on_white_and_on_black() -> None:
    numbers = [value for name, value in vars(colours).items() if name.isupper()]
    assert len(numbers) >= 6
    for number in numbers:
        light = _luminance(number)
        assert min(1.05 / (light + 0.05), (light + 0.05) / 0.05) >= 3.9, number


def _luminance(number: int) -> float:
    """Return the relative luminance of a colour of the 256-colour palette."""
    levels = (0, 95, 135, 175, 215, 255)
    place = number - 16
    grey = 8 + 10 * (number - 232)
    parts = (levels[place // 36], levels[place // 6 % 6], levels[place % 6]) if number < 232 else (grey,) * 3
    red, green, blue = (
        part / 255 / 12.92 if part / 255 <= 0.03928 else ((part / 255 + 0.055) / 1.055) ** 2.4
        for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
