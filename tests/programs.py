"""System programs that tests need.

`python -m tests.programs` installs the missing ones.
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
    """A program and its Debian package."""

    #: Alternative command names, in order of preference.
    names: tuple[str, ...]
    package: str

    def find(self) -> str | None:
        """Return the path of the program; `None` if it is not installed."""
        path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
        return next((found for name in self.names if (found := shutil.which(name, path=path))), None)

    def require(self) -> str:
        """Return the path of the program. If it is missing, skip the test, or fail it in CI."""
        found = self.find()
        if found is None:
            message = f"needs {self.names[0]} (on Debian: apt-get install {self.package})"
            if os.environ.get("CI"):
                pytest.fail(message)
            pytest.skip(message)
        return found


CHROMIUM: Final = Program(("chromium", "chromium-browser", "google-chrome"), "chromium")
NGINX: Final = Program(("nginx",), "nginx-light")


def main() -> int:
    """Install the missing programs, if this is Debian and the user is root. Returns the exit status."""
    missing = [program.package for program in (CHROMIUM, NGINX) if program.find() is None]
    if not missing:
        return 0
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        print(f"Not installed: {', '.join(missing)}. Tests that need them are skipped.")
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
            print(f"error: could not install {' and '.join(missing)}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
