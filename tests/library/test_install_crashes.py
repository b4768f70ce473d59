"""SIGKILL at every step of an installation: afterwards there is either the old or the new library."""

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

from tests.library.source_fixtures import leftovers, read_files, write_files
from tests.programs import STRACE, skip_unless_ci
from tests.stdio_server_process import ROOT


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory if possible: a kill is not a power failure, and a disk is slower."""
    memory = Path("/dev/shm")
    created = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else tmp_path))
    yield created
    shutil.rmtree(created)


@pytest.mark.parametrize(
    "scene", ["add", "update", "slow update", "overwrite", "slow overwrite", "remove", "remove edited"]
)
def test_a_kill_at_any_step_leaves_the_old_or_the_new_library(folder: Path, scene: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.library.install_crash_runner", str(folder), scene],
        cwd=ROOT, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    outcome = msgspec.json.decode(done.stdout)
    assert outcome["wrong"] == []
    assert outcome["kills"] > 10
    assert outcome["old"] > 3
    assert outcome["new"] > 1
    # If folders cannot be swapped at once, there is no library between two renames.
    assert outcome["absent"] <= (3 if "slow" in scene else 0)


def trace_command(tmp_path: Path, *arguments: str) -> list[str]:
    """The renames and syncs of a command, in order."""
    log = tmp_path / "trace"
    command = [
        STRACE.require(),
        "-f",
        "-y",
        "-s",
        "1000",
        "-e",
        "trace=fsync,rename,renameat2",
        "-o",
        str(log),
    ]
    done = subprocess.run(
        [*command, sys.executable, "-m", "dittybag", "library", *arguments],
        cwd=ROOT, env=os.environ | {"DITTYBAG_HOME": str(tmp_path / "home")},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if "ptrace" in done.stderr:
        skip_unless_ci("this system does not allow tracing")
    assert done.returncode == 0, done.stderr
    return [line for line in log.read_text().splitlines() if str(tmp_path) in line]


def position(lines: list[str], pattern: str) -> int:
    (found,) = [number for number, line in enumerate(lines) if re.search(pattern, line)]
    return found


@pytest.mark.parametrize("change", ["add", "update"])
def test_all_files_are_synced_before_they_are_installed(tmp_path: Path, change: str) -> None:
    source = write_files(tmp_path / "source", {"a.md": "1", "deep/b.md": "2"})
    if change == "add":
        lines = trace_command(tmp_path, "add", str(source), "--name", "lib")
    else:
        trace_command(tmp_path, "add", str(source), "--name", "lib")
        write_files(source, {"a.md": "new", "deep/b.md": "new"})
        lines = trace_command(tmp_path, "update", "lib")
    move = position(lines, r'rename(at2)?\(.*/work-[^"]*/new".*/libraries/lib"(, RENAME_EXCHANGE)?\) = 0')
    record = position(lines, r'rename\(".*/work-[^"]*/lib.json", ".*/lib.json"\) = 0')
    for written in (r"a\.md>", r"deep/b\.md>", r"/deep>", r"/new>", r"/work-[^/]*/lib\.json>"):
        assert position(lines, rf"fsync\(\d+<.*/\.dittybag/.*{written}\)|fsync\(\d+<.*{written}\)") < move
    after = [line for line in lines[move + 1 : record] if re.search(r"fsync\(\d+</.*/libraries>\)", line)]
    assert after
    assert move < record
    assert any(re.search(r"fsync\(\d+</.*/\.dittybag>\)", line) for line in lines[record + 1 :])


def test_staging_folders_of_killed_processes_are_removed_but_not_those_in_use(tmp_path: Path) -> None:
    source = write_files(tmp_path / "source", {"a.md": "1"})
    (tmp_path / "bin").mkdir()
    # A Git that never ends, so that the process keeps its staging folder.
    started = tmp_path / "started"
    script = f"#!/bin/sh\necho $$ > {started}.part && mv {started}.part {started}\nexec sleep 60\n"
    (write_files(tmp_path, {"bin/git": script}) / "bin" / "git").chmod(0o755)
    write_files(source, {".git/HEAD": ""})
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
    assert read_files(tmp_path / "home" / "libraries" / "two") == {"a.md": "1"}


def test_a_failed_write_leaves_no_leftovers(tmp_path: Path) -> None:
    source = write_files(tmp_path / "source", {"a.md": "x" * 100_000})
    command = f'ulimit -f 8; exec "{sys.executable}" -m dittybag library add "{source}"'
    done = subprocess.run(
        ["sh", "-c", command], cwd=ROOT, env=os.environ | {"DITTYBAG_HOME": str(tmp_path / "home")},
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 5, done
    assert "libraries: The libraries folder could not be read or written" in done.stderr
    assert "File too large" in done.stderr
    assert leftovers(tmp_path / "home") == []
    assert not (tmp_path / "home" / "libraries" / "source").exists()
