"""`dittybag prime`: what an agent should know when it starts, and nothing else, whatever fails."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import apsw
import pytest

from tests.cli.cli_runner import dittybag
from tests.repetitions import SEED, repetitions

FAULTS = repetitions(12, 1_000)
#: In seconds: the deadline of the command, and what a busy machine adds.
MOST_SECONDS = 20.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    dittybag(folder, "prompt", "add", "login-guide", "How the login works")
    dittybag(folder, "prompt", "add", "style", "Plain English")
    dittybag(folder, "task", "add", "Fix the login", "--notes", "It hangs")
    dittybag(folder, "pin", "style")
    return folder


def test_the_pack_has_the_task_what_matches_and_the_pins(home: Path) -> None:
    pack = dittybag(
        home, "prime", "-p", "default", "--task", "1", "--budget", "1500", "--actor", "agent"
    ).stdout
    places = [
        pack.index(text) for text in ("task:1: Fix the login", "prompt login-guide", "Pinned prompt style")
    ]
    assert places == sorted(places)
    assert "login-guide" in dittybag(home, "prime", "-p", "default", "--query", "login").stdout
    # The project of a folder without one is empty, and then there is nothing to say.
    assert dittybag(home, "prime").stdout == ""
    shown = dittybag(home, "prime", "--task", "99", "--verbose")
    assert (shown.stdout, "Task 99 not found" in shown.stderr) == ("", True)
    quiet = dittybag(home, "prime", "--budget", "1", "--nonsense")
    assert (quiet.stdout, quiet.stderr) == ("", "")
    assert (home / "prime.log").read_text().count("\n") == 2
    nothing = home.parent / "nothing"
    assert dittybag(nothing, "prime").stdout == ""
    assert not nothing.exists()


def corrupt(home: Path, chance: random.Random) -> None:
    data = bytearray((home / "default.db").read_bytes())
    for _ in range(chance.randrange(1, 400)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    (home / "default.db").write_bytes(data[: chance.choice((len(data), chance.randrange(len(data))))])


def remove(home: Path, chance: random.Random) -> None:
    path = chance.choice((home, home / "default.db"))
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def replace_by_folder(home: Path, chance: random.Random) -> None:
    (home / "default.db").unlink()
    (home / "default.db").mkdir()


def replace_by_pipe(home: Path, chance: random.Random) -> None:
    (home / "default.db").unlink()
    os.mkfifo(home / "default.db")


def block_log(home: Path, chance: random.Random) -> None:
    (home / "prime.log").mkdir()
    corrupt(home, chance)


DAMAGES: tuple[Callable[[Path, random.Random], None], ...] = (
    corrupt,
    remove,
    replace_by_folder,
    replace_by_pipe,
    block_log,
)


def test_no_fault_reaches_the_client(home: Path, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    expected = prime(home)
    assert expected
    for number in range(FAULTS):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(home, copy)
        fault = number % 6
        began = time.monotonic()
        if fault == 0:
            # Locked: a reader need not wait for a writer, but may for a recovery.
            with closing(apsw.Connection(str(copy / "default.db"))) as connection:
                connection.execute(chance.choice(("BEGIN EXCLUSIVE", "PRAGMA locking_mode = EXCLUSIVE")))
                connection.execute("UPDATE projects SET updated_at = updated_at")
                output = prime(copy)
        elif fault == 1:
            output = prime(copy, killed_after=chance.uniform(0, 0.15))
        elif fault == 2:
            # A full disk: no file can grow.
            output = prime(copy, limit="ulimit -f 0")
        elif fault == 3:
            output = prime(copy, environment={"HOME": "/nonexistent", "DITTYBAG_HOME": ""})
        else:
            chance.choice(DAMAGES)(copy, chance)
            output = prime(copy)
        assert output in ("", expected), (fault, output)
        assert time.monotonic() - began < MOST_SECONDS
        shutil.rmtree(copy, ignore_errors=True)


def prime(
    home: Path,
    *,
    killed_after: float | None = None,
    limit: str = "true",
    environment: dict[str, str] | None = None,
) -> str:
    """Return what a client gets, which must not see any failure."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DITTYBAG_")}
    process = subprocess.Popen(
        [
            "/bin/sh",
            "-c",
            f'{limit}; exec "$@"',
            "sh",
            sys.executable,
            "-m",
            "dittybag",
            "prime",
            "-p",
            "default",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=inherited | {"DITTYBAG_HOME": str(home)} | (environment or {}),
        text=True,
    )
    if killed_after is not None:
        time.sleep(killed_after)  # the moment of the fault, not a wait
        kill_children(process.pid)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, ""), (process.returncode, errors)
    return output


@pytest.mark.skipif(sys.platform != "linux", reason="needs packets of Linux")
def test_no_write_blocks_longer_than_a_pipe_of_the_system_allows(home: Path, tmp_path: Path) -> None:
    """A pipe of macOS that is ready for writing may have room for 512 bytes only: more would wait."""
    dittybag(home, "prompt", "add", "rules", "Keep it short. " * 100)
    dittybag(home, "pin", "rules")
    (tmp_path / "sitecustomize.py").write_text("import select\nselect.PIPE_BUF = 512\n")
    packets: list[bytes] = []
    # On a busy machine, the command may reach its deadline and print nothing.
    end = time.monotonic() + MOST_SECONDS
    while not packets and time.monotonic() < end:
        # Each write is a packet.
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            subprocess.run(
                [sys.executable, "-m", "dittybag", "prime", "-p", "default"],
                stdout=theirs.fileno(),
                env=os.environ | {"DITTYBAG_HOME": str(home), "PYTHONPATH": str(tmp_path)},
                check=True,
                timeout=60,
            )
            theirs.close()
            packets = list(iter(partial(ours.recv, 1 << 16), b""))
    assert b"Keep it short." in b"".join(packets)
    assert {len(packet) for packet in packets[:-1]} == {512}


def kill_children(parent: int) -> None:
    """Kill the process that does the work, if it runs already."""
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    except OSError:
        return
    for child in children:
        try:
            os.kill(int(child), signal.SIGKILL)
        except ProcessLookupError:
            continue
