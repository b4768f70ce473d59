"""What commands do at a terminal: long output and progress."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tests.cli.cli_runner import dittybag
from tests.cli.pseudo_terminal import run_in_terminal, strip_colours


def program(folder: Path, name: str, script: str) -> dict[str, str]:
    """Write a shell script as a program, and return the `PATH` on which it comes first."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_output_that_is_longer_than_the_screen_is_paged(tmp_path: Path) -> None:
    dittybag(tmp_path, "prompt", "add", "long", "\n".join(f"line {number}" for number in range(100)))
    dittybag(tmp_path, "prompt", "add", "short", "One line")
    pager = program(tmp_path / "bin", "my-pager", f"cat > {tmp_path}/paged; echo paged with $LESS $1")
    chosen = {**pager, "PAGER": "my-pager -x"}
    screen = run_in_terminal(tmp_path, "prompt", "show", "long", variables=chosen)
    assert screen == "paged with FRX -x\n"
    assert "line 99" in (tmp_path / "paged").read_text()
    # Colours are kept.
    assert "\x1b[" in (tmp_path / "paged").read_text()
    assert "One line" in run_in_terminal(tmp_path, "prompt", "show", "short", variables=chosen)
    # A pager that does not exist, or that stops reading, is not an error.
    missing = {"PAGER": "no-such-pager"}
    assert "line 99" in run_in_terminal(tmp_path, "prompt", "show", "long", variables=missing)
    dittybag(tmp_path, "prompt", "add", "huge", "x\n" * 300_000)
    quitting = {"PAGER": "head -c 1"}
    screen = run_in_terminal(tmp_path, "prompt", "show", "huge", "--raw", variables=quitting)
    assert "Error" not in screen
    # Notes to standard error come after the page, in order.
    (tmp_path / "tasks.csv").write_text("title\n" + "".join(f"Task {number}\n" for number in range(30)))
    dittybag(tmp_path, "import", str(tmp_path / "tasks.csv"))
    paged = {"PAGER": "sed -u s/^/paged:/"}
    screen = strip_colours(run_in_terminal(tmp_path, "history", "--limit", "30", variables=paged))
    *page, last = screen.splitlines()
    assert all(line.startswith("paged:") for line in page)
    assert last.startswith("hint: for older changes, use --before ")
