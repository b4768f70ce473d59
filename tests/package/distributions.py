"""Builds the wheel and the source distribution: `python -m tests.package.distributions`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.stdio_server_process import ROOT

DIST: Final = ROOT / "dist"
_SECONDS: Final = 120


class Distributions(Struct, frozen=True):
    """The two files of a version."""

    wheel: Path
    sdist: Path


def run_tool(module: str, *arguments: str | Path, cwd: Path = ROOT) -> str:
    """Run a tool of the development environment and return its output. Raises `CalledProcessError`."""
    return subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
        check=True,
    ).stdout


def build(folder: Path) -> Distributions:
    """Build both files from the source tree, without network access."""
    run_tool("hatchling", "build", "-d", folder)
    return find(folder)


def find(folder: Path) -> Distributions:
    """Return the files in a folder."""
    (wheel,) = folder.glob("dittybag-*.whl")
    (sdist,) = folder.glob("dittybag-*.tar.gz")
    return Distributions(wheel, sdist)


def check(built: Distributions) -> str:
    """Run the checkers on both files and return what they print. Raises `CalledProcessError`."""
    rendered = run_tool("twine", "--no-color", "check", "--strict", built.wheel, built.sdist)
    return rendered + run_tool("check_wheel_contents", built.wheel)


def main() -> int:
    """Build into `dist/` and check. Returns the exit status."""
    for old in (*DIST.glob("dittybag-*.whl"), *DIST.glob("dittybag-*.tar.gz")):
        old.unlink()
    try:
        built = build(DIST)
        print(check(built), end="")
    except subprocess.CalledProcessError as error:
        print(f"error: {' '.join(error.cmd[2:4])} failed\n{error.stdout}", file=sys.stderr)
        return 1
    for file in (built.wheel, built.sdist):
        print(f"{file.relative_to(ROOT)}  {file.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
