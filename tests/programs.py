"""Programs of the system that tests need: found, or installed where that can be.

Run as a program, it gets those that are missing: `python -m tests.programs`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Final

import pytest
from msgspec import Struct

_INSTALL_SECONDS: Final = 900


class Program(Struct, frozen=True):
    """A program, and the package of Debian that has it."""

    #: The names it goes by; the first that is there will do.
    names: tuple[str, ...]
    package: str

    def find(self) -> str | None:
        """Where it is, if it is anywhere."""
        path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
        return next((found for name in self.names if (found := shutil.which(name, path=path))), None)

    def required(self) -> str:
        """Where it is. Without it a test is skipped, but never in a run that decides about a change."""
        found = self.find()
        if found is None:
            words = f"needs {self.names[0]} (on Debian: apt-get install {self.package})"
            if os.environ.get("CI"):
                pytest.fail(words)
            pytest.skip(words)
        return found


CHROMIUM: Final = Program(("chromium", "chromium-browser", "google-chrome"), "chromium")
NGINX: Final = Program(("nginx",), "nginx-light")


def main() -> int:
    """Install what is missing, where that can be done without asking anybody."""
    missing = [program.package for program in (CHROMIUM, NGINX) if program.find() is None]
    if not missing:
        return 0
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        print(f"Tests that need one of these are skipped: {', '.join(missing)}")
        return 0
    print(f"Installing {' and '.join(missing)} ...", flush=True)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", *missing]):
        done = subprocess.run(
            ["apt-get", *command],
            env=quiet,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            print(done.stdout[-4000:], file=sys.stderr)
            print("error: the packages above could not be installed", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
