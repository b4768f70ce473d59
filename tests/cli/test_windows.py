"""What every way of starting Dittybag does on Windows, in a process that lacks what Windows lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = str(Path(sys.executable).parent / "dittybag")
MODULE = [sys.executable, "-m", "dittybag"]

#: Imported when Python starts. What Windows lacks is removed as soon as the package is imported: until then,
#: Python itself needs it.
WINDOWS = """
import os, signal, sys

class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name == "dittybag" and hasattr(os, "fork"):
            sys.platform, os.name = "win32", "nt"
            for attribute in ("fork", "uname", "getuid", "posix_spawn", "statvfs", "O_NOFOLLOW"):
                delattr(os, attribute)
            for attribute in ("SIGALRM", "SIGHUP", "SIGWINCH", "setitimer", "pthread_sigmask"):
                delattr(signal, attribute)
        if name in ("fcntl", "grp", "posix", "pwd", "resource", "termios", "tty"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Lacking())
"""


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "sitecustomize.py").write_text(WINDOWS)
    home = tmp_path / "home"
    return {**os.environ, "PYTHONPATH": str(tmp_path), "DITTYBAG_HOME": str(home), "HOME": str(home)}


@pytest.mark.parametrize(
    "command",
    [
        [SCRIPT],
        [SCRIPT, "--version"],
        [SCRIPT, "task", "list", "--json"],
        [SCRIPT, "serve"],
        [SCRIPT, "prime", "--help"],
        [*MODULE, "serve", "--http"],
    ],
    ids=lambda command: " ".join(command[1:]),
)
def test_a_command_refuses_and_names_wsl(variables: dict[str, str], command: list[str]) -> None:
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=variables, input=""
    )
    assert result.returncode == 1
    assert result.stdout == ""
    first, *hints = result.stderr.splitlines()
    assert first.startswith("error: Dittybag does not run on Windows itself")
    assert "wsl --install" in result.stderr
    assert all(line.startswith("hint: ") for line in hints)


@pytest.mark.parametrize("command", [[SCRIPT, "prime"], [*MODULE, "prime", "--verbose", "--format", "json"]])
def test_the_hook_of_a_client_is_silent_and_succeeds(variables: dict[str, str], command: list[str]) -> None:
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=variables, input=""
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
