"""A forked process behaves as one that `subprocess` starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.child_processes import child_pids
from tests.forked_processes import ROOT, ForkedProcess, run

PROBE = "tests.process_probe"

#: Starts processes in several threads at once, as the first thing that it does.
THREADS = """
from concurrent.futures import ThreadPoolExecutor
from tests.child_processes import child_pids
from tests.forked_processes import run
with ThreadPoolExecutor(8) as pool:
    statuses = pool.map(lambda _: run("tests.process_probe", "end").returncode, range(32))
print(sorted(set(statuses)), len(child_pids()))
"""


@pytest.mark.parametrize("how", ["end", "status", "text", "error"])
def test_it_has_its_own_streams_environment_folder_and_status(tmp_path: Path, how: str) -> None:
    environment = {**os.environ, "ODD": "\udcff", "PYTHONPATH": str(ROOT)}
    started = subprocess.run(
        [sys.executable, "-m", PROBE, how, "\xe9"],
        cwd=tmp_path, env=environment, input="text", text=True, capture_output=True, timeout=30, check=False,
    )  # fmt: skip
    del environment["PYTHONPATH"]
    forked = run(PROBE, how, "\xe9", stdin="text", env=environment, cwd=tmp_path)
    assert (forked.returncode, forked.stderr.splitlines()[-1]) == (
        started.returncode,
        started.stderr.splitlines()[-1],
    )
    assert forked.stdout == started.stdout.replace(f", ('PYTHONPATH', '{ROOT}')", "")
    assert str(tmp_path) in forked.stdout


def test_it_is_a_child_that_can_be_killed() -> None:
    with ForkedProcess(PROBE, "wait", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"[]")
        assert process.pid in child_pids()
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == -signal.SIGTERM
    assert process.pid not in child_pids()


def test_a_process_with_other_variables_for_python_itself_is_started() -> None:
    result = run(PROBE, "end", env={**os.environ, "PYTHONIOENCODING": "utf-8:ignore"})
    assert result.stderr.startswith("utf-8 ignore ")


def test_several_threads_may_start_the_first_processes() -> None:
    program = [sys.executable, "-c", THREADS]
    result = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    # One process is left: the one that was forked.
    assert result.stdout == "[0] 1\n"
