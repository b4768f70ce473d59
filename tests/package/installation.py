"""An environment with Dittybag in it, as a user of this machine would have it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from uv import find_uv_bin

from tests.stdio_server_process import ROOT

SUPPORTED: Final = ("3.11", "3.12", "3.13", "3.14")
_SECONDS: Final = 180
#: Where the version manager of many developers keeps interpreters that are not in `PATH`.
_VERSIONS: Final = Path.home() / ".pyenv" / "versions"


def find_python(version: str) -> str | None:
    """Return an interpreter of this version, such as 3.12; `None` if the machine has none."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return sys.executable
    name = f"python{version}"
    candidates = [*_VERSIONS.glob(f"{version}.*/bin/{name}"), shutil.which(name)]
    return next((str(found) for found in candidates if found and _works(str(found), version)), None)


def _works(program: str, version: str) -> bool:
    command = [program, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return done.returncode == 0 and done.stdout.strip() == version


def uv_environment() -> dict[str, str]:
    """Return this process's environment, with which uv uses this project's cache and downloads no Python."""
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    environment.setdefault("UV_CACHE_DIR", str(ROOT / ".cache" / "uv"))
    return environment | {"UV_PYTHON_DOWNLOADS": "never", "UV_LINK_MODE": "copy"}


def run_uv(*arguments: str | Path, cwd: Path = ROOT) -> None:
    """Run uv with this project's cache. Raises `AssertionError` with the output if it fails."""
    done = subprocess.run(
        [find_uv_bin(), "--no-config", *map(str, arguments)],
        cwd=cwd,
        env=uv_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


class Installation:
    """Dittybag in an empty environment, with an empty home and working folder, outside the source tree."""

    def __init__(self, folder: Path, python: str, requirement: str, *, lowest: bool = False) -> None:
        """`lowest`: install the lowest declared version of every dependency, not the pinned one."""
        self.home, self.work, self.prefix = folder / "home", folder / "work", folder / "environment"
        self.home.mkdir()
        self.work.mkdir()
        run_uv("venv", "--quiet", "--python", python, self.prefix, cwd=self.work)
        constraints = ROOT / "constraints.txt"
        versions = ("--resolution", "lowest-direct") if lowest else ("--constraint", constraints)
        self._uv("install", *versions, "--build-constraint", constraints, requirement)

    @property
    def program(self) -> Path:
        return self.prefix / "bin" / "dittybag"

    @property
    def python(self) -> Path:
        return self.prefix / "bin" / "python"

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of this process's environment."""
        return {"HOME": str(self.home), "PATH": f"{self.program.parent}:/usr/bin:/bin", "LANG": "C.UTF-8"}

    def run(self, *arguments: str, stdin: str = "") -> str:
        """Run a command of Dittybag and return its standard output."""
        return self._run(self.program, *arguments, stdin=stdin)

    def run_python(self, code: str) -> str:
        """Run Python code in the environment and return its standard output."""
        return self._run(self.python, "-c", code)

    def _run(self, program: Path, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [str(program), *arguments],
            cwd=self.work,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def uninstall(self) -> None:
        self._uv("uninstall", "dittybag")

    def files(self) -> set[str]:
        """Return the files in the home and working folder."""
        return {
            str(path.relative_to(folder))
            for folder in (self.home, self.work)
            for path in folder.rglob("*")
            if not path.is_dir()
        }

    def _uv(self, command: str, *arguments: str | Path) -> None:
        run_uv("pip", command, "--quiet", "--python", self.python, *arguments, cwd=self.work)
