"""Tests that need Linux are skipped elsewhere, even in CI, and the summary says why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.stdio_server_process import ROOT

TESTS = """
import sys
from pathlib import Path

import pytest

from tests.programs import Program

@pytest.fixture(autouse=True)
def _system(monkeypatch):
    monkeypatch.setattr(sys, "platform", SYSTEM)

def test_that_needs_a_program():
    Program(("no-such-program",), "no-such-package").require()

def test_that_reads_proc():
    Path("/proc/0/status").read_text()
"""


@pytest.mark.parametrize(("system", "outcome"), [("linux", "2 failed"), ("darwin", "2 skipped")])
def test_what_only_linux_has_fails_there_and_is_skipped_elsewhere(
    system: str, outcome: str, tmp_path: Path
) -> None:
    file = tmp_path / "test_sample.py"
    file.write_text(f"SYSTEM = {system!r}\n{TESTS}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest"]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), "-c", str(ROOT / "pyproject.toml"), str(file)],
        cwd=ROOT,
        env={"CI": "true", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert outcome in done.stdout, done.stdout + done.stderr
    assert "needs no-such-program (on Debian: apt-get install no-such-package)" in done.stdout
    assert ("needs /proc of Linux" in done.stdout) == (system == "darwin")
