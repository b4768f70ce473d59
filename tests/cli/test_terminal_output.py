"""What commands do at a terminal: the picker for names, the pager, and the clipboard."""

from __future__ import annotations

import base64
import os
import re
import stat
from pathlib import Path

import pytest

from tests.cli.cli_runner import dittybag
from tests.cli.pseudo_terminal import run_in_terminal, strip_colours


def program(folder: Path, name: str, script: str) -> dict[str, str]:
    """Write a shell script as a program, and return the `PATH` on which it comes first."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def without_fzf(folder: Path) -> dict[str, str]:
    """Return a `PATH` without fzf."""
    return {"PATH": str(folder)}


DOWN = "\x1b[B"


def test_a_name_that_is_left_out_is_picked(tmp_path: Path) -> None:
    for name in ("alpha", "beta", "gamma"):
        dittybag(tmp_path, "prompt", "add", name, f"Text of {name}", "--title", f"The {name} prompt")
    empty = without_fzf(tmp_path)
    screen = run_in_terminal(
        tmp_path, "prompt", "show", answers=[("gamma", DOWN), ("> beta", "\r")], variables=empty
    )
    assert "Text of beta" in screen
    # Typing filters by names and titles; Backspace takes a letter back.
    screen = run_in_terminal(
        tmp_path, "prompt", "show", answers=[("gamma", "the gamx\x7f"), ("> gamma", "\r")], variables=empty
    )
    assert "Text of gamma" in screen
    screen = run_in_terminal(
        tmp_path, "prompt", "show", answers=[("gamma", "\x1b")], variables=empty, status=1
    )
    assert "Interrupted" in screen
    dittybag(tmp_path, "task", "add", "Write tests")
    screen = run_in_terminal(tmp_path, "task", "done", answers=[("Write tests", "\r")], variables=empty)
    assert "Completed task 1" in screen
    # Without a terminal, or without anything to pick from, the argument is required.
    assert "NAME" in dittybag(tmp_path, "prompt", "show", status=2).stderr
    assert "TASK" in run_in_terminal(tmp_path, "task", "done", variables=empty, status=2)


def test_fzf_picks_if_it_is_installed(tmp_path: Path) -> None:
    dittybag(tmp_path, "prompt", "add", "alpha", "Text", "--title", "$(touch hacked) `x`")
    fzf = program(
        tmp_path / "bin", "fzf", f"tee {tmp_path}/input; printf '%s\\n' \"$@\" > {tmp_path}/arguments"
    )
    assert "Text" in run_in_terminal(tmp_path, "prompt", "show", variables=fzf)
    assert (tmp_path / "input").read_text() == "alpha\t$(touch hacked) `x`\n"
    assert "alpha" not in (tmp_path / "arguments").read_text()
    cancelled = program(tmp_path / "bin", "fzf", "exit 130")
    assert "Interrupted" in run_in_terminal(tmp_path, "prompt", "show", variables=cancelled, status=1)


def test_output_that_is_longer_than_the_screen_is_paged(tmp_path: Path) -> None:
    dittybag(tmp_path, "prompt", "add", "long", "\n".join(f"line {number}" for number in range(100)))
    dittybag(tmp_path, "prompt", "add", "short", "One line")
    pager = program(tmp_path / "bin", "my-pager", f"cat > {tmp_path}/paged; echo paged with $LESS $1")
    chosen = {**pager, "DITTYBAG_PAGER": "my-pager -x", "PAGER": "false"}
    screen = run_in_terminal(tmp_path, "prompt", "show", "long", variables=chosen)
    assert screen == "paged with FRX -x\n"
    assert "line 99" in (tmp_path / "paged").read_text()
    # Colours are kept.
    assert "\x1b[" in (tmp_path / "paged").read_text()
    assert "line 99" in run_in_terminal(tmp_path, "--no-pager", "prompt", "show", "long", variables=chosen)
    assert "One line" in run_in_terminal(tmp_path, "prompt", "show", "short", variables=chosen)
    # A pager that does not exist, or that stops reading, is not an error.
    missing = {"DITTYBAG_PAGER": "no-such-pager"}
    assert "line 99" in run_in_terminal(tmp_path, "prompt", "show", "long", variables=missing)
    dittybag(tmp_path, "prompt", "add", "huge", "x\n" * 300_000)
    quitting = {"DITTYBAG_PAGER": "head -c 1"}
    screen = run_in_terminal(tmp_path, "prompt", "show", "huge", "--raw", variables=quitting)
    assert "Error" not in screen
    # Notes to standard error come after the page, in order.
    (tmp_path / "tasks.csv").write_text("title\n" + "".join(f"Task {number}\n" for number in range(30)))
    dittybag(tmp_path, "task", "import", str(tmp_path / "tasks.csv"))
    paged = {"DITTYBAG_PAGER": "sed -u s/^/paged:/"}
    screen = strip_colours(run_in_terminal(tmp_path, "history", "--limit", "30", variables=paged))
    *page, last = screen.splitlines()
    assert all(line.startswith("paged:") for line in page)
    assert last.startswith("hint: for older changes, use --before ")


def test_a_text_is_copied_by_a_program_or_by_the_terminal(tmp_path: Path) -> None:
    dittybag(tmp_path, "prompt", "add", "greet", "Grüße an {{ who }}")
    xclip = program(tmp_path / "bin", "xclip", f"cat > {tmp_path}/clipboard")
    here = {**xclip, "DISPLAY": ":0", "WAYLAND_DISPLAY": "", "SSH_CONNECTION": "", "SSH_TTY": "", "TMUX": ""}
    result = dittybag(tmp_path, "prompt", "render", "greet", "who=alle", "--copy", variables=here)
    assert (result.stdout, result.stderr) == ("", "Copied 13 characters to the clipboard (xclip)\n")
    assert (tmp_path / "clipboard").read_text() == "Grüße an alle"
    # Over SSH, the terminal copies.
    remote = {**here, "SSH_CONNECTION": "x"}
    screen = run_in_terminal(tmp_path, "prompt", "show", "greet", "--copy", variables=remote)
    found = re.search("\x1b]52;c;(.*?)\a", screen)
    assert found is not None
    assert base64.b64decode(found[1]).decode() == "Grüße an {{ who }}"
    assert "(OSC 52)" in screen
    nowhere = {**remote, "PATH": str(tmp_path / "bin")}
    assert (
        "No clipboard was found"
        in dittybag(tmp_path, "prompt", "show", "greet", "--copy", variables=nowhere, status=1).stderr
    )
    dittybag(tmp_path, "resource", "add", "-", "--name", "long.txt", stdin="x" * 100_000)
    screen = run_in_terminal(tmp_path, "resource", "show", "long.txt", "--copy", variables=remote, status=1)
    assert "too long for the terminal's clipboard" in screen


@pytest.mark.parametrize("script", ["cat; echo; exit 7", "exit 7"])
def test_a_program_gets_the_rendered_text_and_decides_the_exit_status(tmp_path: Path, script: str) -> None:
    # Larger than a pipe holds.
    dittybag(tmp_path, "prompt", "add", "big", "-f", "-", stdin="{{ who }} " + "x" * 500_000)
    command = program(tmp_path / "bin", "model", f'echo "$# $1" >&2; {script}')
    result = dittybag(
        tmp_path,
        "prompt",
        "run",
        "big",
        "who=me",
        "--",
        "model",
        "$(touch x) --json",
        variables=command,
        status=7,
    )
    assert result.stderr == "1 $(touch x) --json\n"
    assert result.stdout == ("" if script == "exit 7" else "me " + "x" * 500_000 + "\n")


def test_prompt_run_says_what_is_wrong_before_it_asks(tmp_path: Path) -> None:
    dittybag(tmp_path, "prompt", "add", "greet", "Hi {{ who }}")
    dry = dittybag(tmp_path, "prompt", "run", "greet", "who=me", "--dry-run", "--", "llm", "-m", "a b")
    assert (dry.stdout, dry.stderr) == ("Hi me", "note: would run: llm -m 'a b'\n")
    missing = dittybag(tmp_path, "prompt", "run", "greet", "--", "no-such-program", status=127)
    assert "The command 'no-such-program' was not found" in missing.stderr
    assert "No command was given" in dittybag(tmp_path, "prompt", "run", "greet", "who=x", status=2).stderr
    assert (
        "Missing required argument: who"
        in dittybag(tmp_path, "prompt", "run", "greet", "--", "cat", status=2).stderr
    )
    (tmp_path / "values.json").write_text('{"who": "you"}')
    given = ("--args-json", str(tmp_path / "values.json"))
    assert dittybag(tmp_path, "prompt", "run", "greet", *given, "--", "cat").stdout == "Hi you"
    # At a terminal, it asks. Ctrl-C goes to the program.
    screen = run_in_terminal(
        tmp_path, "prompt", "run", "greet", "--", "cat", answers=[("Enter who", "all\r")]
    )
    assert screen.endswith("Hi all")
    waiting = ("sh", "-c", "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done")
    screen = run_in_terminal(
        tmp_path, "prompt", "run", "greet", "who=x", "--", *waiting, answers=[("ready", "\x03")], status=5
    )
    assert "caught" in screen
