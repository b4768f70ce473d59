"""The worked example of the guide to several agents: a plan, four workers, one of which is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from tests.cli.cli_runner import data, dittybag
from tests.stdio_server_process import ROOT

GUIDE = (ROOT / "docs" / "guides" / "several-agents.md").read_text()
#: In seconds: how long the example may take on a busy machine.
TIMEOUT = 90


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)


def write_program(path: Path, command: str) -> None:
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o755)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with the agent of the guide and the programs that it needs; what still runs is killed."""
    programs = tmp_path / "bin"
    programs.mkdir()
    write_program(programs / "dittybag", f'"{sys.executable}" -m dittybag')
    write_program(programs / "python3", f'"{sys.executable}"')
    (agent,) = blocks("python")
    (tmp_path / "agent.py").write_text(agent)
    yield tmp_path
    for file in tmp_path.glob("*.pid"):
        with suppress(ProcessLookupError, ValueError):
            os.killpg(int(file.read_text()), signal.SIGKILL)


def run_example(folder: Path, lease: str) -> str:
    """Run all commands of the guide, and return what they print."""
    environment = {
        "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
        "HOME": str(folder),
        "DITTYBAG_HOME": str(folder),
        "PYTHONPATH": str(ROOT / "src"),
        "LEASE": lease,
    }
    with (folder / "output.txt").open("w+") as output:
        # The workers outlive the script, so they must not keep a pipe open.
        with subprocess.Popen(
            ["sh", "-e"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as script:
            try:
                script.communicate("\n".join(blocks("sh")).encode(), timeout=TIMEOUT)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(script.pid, signal.SIGKILL)
        output.seek(0)
        text = output.read()
    assert script.returncode == 0, text
    return text


def read_changes(home: Path) -> list[dict[str, Any]]:
    """Return all changes of tasks, oldest first."""
    with closing(apsw.Connection(str(home / "default.db"))) as connection:
        changes = connection.execute(
            "SELECT seq, action, actor, entity, after FROM changes WHERE kind = 'task' ORDER BY seq"
        )
        return [
            {
                "seq": seq,
                "action": action,
                "actor": actor,
                "entity": entity,
                "after": msgspec.json.decode(after),
            }
            for seq, action, actor, entity, after in changes
        ]


def test_all_tasks_are_done_once_and_in_order_though_a_worker_is_killed(folder: Path) -> None:
    output = run_example(folder, "4s")
    *tasks, plants = sorted(
        data(dittybag(folder, "task", "list", "-p", "shop", "--include-done", "--json"))["tasks"],
        key=lambda task: task["id"],
    )
    assert {task["status"] for task in tasks} == {"done"}
    assert re.search(r"error: Fence \d+ of task 11 is no longer valid: 'fast' has held it since ", output)
    assert output.endswith("refused with exit status 4\n")
    assert (plants["status"], plants["claim"]["holder"]) == ("doing", "fast")
    changes = read_changes(folder)
    claims = [(int(change["entity"]), change["actor"]) for change in changes if is_claim(change)]
    done = [int(change["entity"]) for change in changes if is_completion(change)]
    assert sorted(done) == [task["id"] for task in tasks]
    for task in tasks:
        waited_for = [*task["blocked_by"], *(part["id"] for part in tasks if part["parent"] == task["id"])]
        first_claim = next(change["seq"] for change in changes if is_claim(change, task["id"]))
        for other in waited_for:
            assert first_claim > next(change["seq"] for change in changes if is_completion(change, other))
    # The agents finished what they were told to be done, each task once.
    finished = [line.split() for line in (folder / "finished.txt").read_text().splitlines()]
    assert sorted(int(task) for task, _ in finished) == sorted(task for task in done if task != 1)
    [lost] = [task for task, actor in claims if actor == "worker-2"]
    assert len([actor for task, actor in claims if task == lost]) > 1
    assert dict(finished)[str(lost)] != "worker-2"


def is_claim(change: dict[str, Any], task: int | None = None) -> bool:
    return _is_of(change, task) and change["after"].get("status") == "doing"


def is_completion(change: dict[str, Any], task: int | None = None) -> bool:
    return _is_of(change, task) and change["after"].get("status") == "done"


def _is_of(change: dict[str, Any], task: int | None) -> bool:
    return change["action"] == "update" and (task is None or int(change["entity"]) == task)
