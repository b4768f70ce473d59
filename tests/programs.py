"""System programs that tests need.

`python -m tests.programs` installs the missing ones.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NoReturn

import pytest
from msgspec import Struct

_INSTALL_SECONDS: Final = 900

#: Folders of programs that are often missing from `PATH`. Debian keeps PostgreSQL's in one per version.
_FOLDERS: Final = ("/usr/sbin", "/sbin", *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"))[::-1]))


class Program(Struct, frozen=True):
    """A program and its Debian package."""

    #: Alternative command names, in order of preference.
    names: tuple[str, ...]
    package: str

    def find(self) -> str | None:
        """Return the path of the program; `None` if it is not installed."""
        path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_FOLDERS))
        return next((found for name in self.names if (found := shutil.which(name, path=path))), None)

    def require(self) -> str:
        """Return the path of the program. If it is missing, skip the test, or fail it in CI."""
        found = self.find()
        if found is None:
            skip_unless_ci(f"needs {self.names[0]} (on Debian: apt-get install {self.package})")
        return found


def skip_unless_ci(reason: str) -> NoReturn:
    """Skip the test where something cannot run. In CI on Linux, everything must run, so the test fails."""
    if _must_run_everything():
        pytest.fail(reason)
    pytest.skip(reason)


def _must_run_everything() -> bool:
    return bool(os.environ.get("CI")) and sys.platform == "linux"


#: The shell is Chromium without its own windows. It needs a third less processor time for the same pages.
CHROMIUM: Final = Program(
    ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"), "chromium-headless-shell"
)
NGINX: Final = Program(("nginx",), "nginx-light")
GIT: Final = Program(("git",), "git")
STRACE: Final = Program(("strace",), "strace")
SYSTEMD: Final = Program(("systemd-analyze",), "systemd")
POSTGRES: Final = Program(("postgres",), "postgresql")
PGBOUNCER: Final = Program(("pgbouncer",), "pgbouncer")
SHELLS: Final = {name: Program((name,), name) for name in ("bash", "zsh", "fish")}

ALL: Final = (CHROMIUM, NGINX, GIT, STRACE, SYSTEMD, POSTGRES, PGBOUNCER, *SHELLS.values())


def main() -> int:
    """Install the missing programs, if this is Debian and the user is root. Returns the exit status.

    In CI, the user may also become root with sudo. It is an error in CI on Linux if a program cannot be
    installed; elsewhere, tests that need it are skipped.
    """
    missing = _missing()
    if missing and shutil.which("apt-get") is not None and (os.geteuid() == 0 or _may_use_sudo()):
        print(f"Installing {', '.join(missing)} ...", flush=True)
        print(_install(missing), end="", file=sys.stderr)
        missing = _missing()
    if not missing:
        return 0
    print(f"Not installed: {', '.join(missing)}. Tests that need them are skipped.")
    return 1 if _must_run_everything() else 0


def _may_use_sudo() -> bool:
    return bool(os.environ.get("CI")) and shutil.which("sudo") is not None


def _missing() -> list[str]:
    """Return the packages of programs that are not installed."""
    return [program.package for program in ALL if program.find() is None]


def _install(packages: list[str]) -> str:
    """Install Debian packages. Returns the end of the output if that fails."""
    apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    if os.geteuid() != 0:
        apt = ["sudo", "--non-interactive", *apt]
    for command in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run(
            [*apt, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            return done.stdout[-4000:]
    return ""


if __name__ == "__main__":
    sys.exit(main())
