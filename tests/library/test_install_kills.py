"""SIGKILL at every step of a change: there is the old library or the new one, and the next one tidies up."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.library.packing import leftovers, plant, tree
from tests.wire import ROOT


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory, where there is such a place: a kill is no power failure, and a disk would take its time."""
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else tmp_path))
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize(
    "scene",
    [
        "add",
        "add archive",
        "update",
        "slow update",
        "update edited",
        "overwrite",
        "remove",
        "remove edited",
    ],
)
def test_a_kill_at_any_step_leaves_the_old_or_the_new_library(folder: Path, scene: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.library.victims", str(folder), scene],
        cwd=ROOT, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    outcome = msgspec.json.decode(done.stdout)
    assert outcome["wrong"] == []
    assert outcome["kills"] > 10
    assert outcome["old"] > 3
    assert outcome["new"] > 1
    # Where two folders cannot be exchanged, there is an instant without a library.
    assert outcome["absent"] <= (3 if scene == "slow update" else 0)


def traced(tmp_path: Path, *arguments: str) -> list[str]:
    """The renames and syncs of a command, in their order."""
    log = tmp_path / "trace"
    command = ["strace", "-f", "-y", "-s", "1000", "-e", "trace=fsync,rename,renameat2", "-o", str(log)]
    if shutil.which("strace") is None:
        pytest.skip("there is no strace to look with")
    done = subprocess.run(
        [*command, sys.executable, "-m", "dittybag", "library", *arguments],
        cwd=ROOT, env=os.environ | {"DITTYBAG_HOME": str(tmp_path / "home")},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if "ptrace" in done.stderr:
        pytest.skip("this system lets nobody trace anything")
    assert done.returncode == 0, done.stderr
    return [line for line in log.read_text().splitlines() if str(tmp_path) in line]


def position(lines: list[str], pattern: str) -> int:
    (found,) = [number for number, line in enumerate(lines) if re.search(pattern, line)]
    return found


@pytest.mark.parametrize("change", ["add", "update"])
def test_everything_is_on_the_disk_before_it_is_put_into_its_place(tmp_path: Path, change: str) -> None:
    source = plant(tmp_path / "source", {"a.md": "1", "deep/b.md": "2"})
    if change == "add":
        lines = traced(tmp_path, "add", str(source), "--name", "lib")
        move = position(lines, r'rename\(".*/work-[^"]*/library", ".*/libraries/lib"\) = 0')
    else:
        traced(tmp_path, "add", str(source), "--name", "lib")
        plant(source, {"a.md": "new", "deep/b.md": "new"})
        lines = traced(tmp_path, "update", "lib")
        move = position(lines, r'renameat2\(.*/work-[^"]*/new".*/libraries/lib", RENAME_EXCHANGE\) = 0')
    record = position(lines, r'rename\(".*/lib.next.json", ".*/lib.json"\) = 0')
    for written in (r"a\.md>", r"deep/b\.md>", r"/deep>", r"/(library|new)>", r"lib\.next\.json>"):
        assert position(lines, rf"fsync\(\d+<.*/\.dittybag/.*{written}\)|fsync\(\d+<.*{written}\)") < move
    after = [line for line in lines[move + 1 : record] if re.search(r"fsync\(\d+</.*/libraries>\)", line)]
    assert after
    assert move < record
    assert any(re.search(r"fsync\(\d+</.*/\.dittybag>\)", line) for line in lines[record + 1 :])


def test_what_a_killed_process_left_is_cleared_away_but_not_what_a_living_one_uses(tmp_path: Path) -> None:
    source = plant(tmp_path / "source", {"a.md": "1"})
    (tmp_path / "bin").mkdir()
    # A Git that never ends, so that a process stays in the middle of its work.
    started = tmp_path / "started"
    script = f"#!/bin/sh\necho $$ > {started}.part && mv {started}.part {started}\nexec sleep 60\n"
    (plant(tmp_path, {"bin/git": script}) / "bin" / "git").chmod(0o755)
    plant(source, {".git/HEAD": ""})
    environment = os.environ | {"DITTYBAG_HOME": str(tmp_path / "home")}
    base = [sys.executable, "-m", "dittybag", "library", "add"]
    with subprocess.Popen(
        [*base, f"{source}#main", "--name", "slow"],
        env=environment | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"},
        stderr=subprocess.DEVNULL,
    ) as slow:
        while not started.exists():
            assert slow.poll() is None
            os.sched_yield()
        try:
            subprocess.run([*base, str(source), "--name", "one"], env=environment, check=True, timeout=30,
                           capture_output=True)  # fmt: skip
            assert len(leftovers(tmp_path / "home")) == 1
        finally:
            slow.kill()
            os.kill(int(started.read_text()), 9)
    subprocess.run([*base, str(source), "--name", "two"], env=environment, check=True, timeout=30,
                   capture_output=True)  # fmt: skip
    assert leftovers(tmp_path / "home") == []
    assert tree(tmp_path / "home" / "libraries" / "two") == {"a.md": "1"}


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    source = plant(tmp_path / "source", {"a.md": "x" * 100_000})
    command = f'ulimit -f 8; exec "{sys.executable}" -m dittybag library add "{source}"'
    done = subprocess.run(
        ["sh", "-c", command], cwd=ROOT, env=os.environ | {"DITTYBAG_HOME": str(tmp_path / "home")},
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 5, done
    assert "libraries: The folder of the libraries could not be read or written" in done.stderr
    assert "File too large" in done.stderr
    assert leftovers(tmp_path / "home") == []
    assert not (tmp_path / "home" / "libraries" / "source").exists()
