"""The entry of the MCP registry, `server.json`: `python -m tests.package.registry_entry` checks it."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from typing import Any, Final

import dittybag
from tests.stdio_server_process import ROOT

FILE: Final = ROOT / "server.json"


def read_entry() -> dict[str, Any]:
    entry: dict[str, Any] = json.loads(FILE.read_text())
    return entry


def find_problems(entry: dict[str, Any], readme: str) -> list[str]:
    """Return where this entry, and the README on the package index, do not name this version.

    The registry's own publisher checks the form of the entry.
    """
    repository = _repository()
    owner, name = repository.removeprefix("https://github.com/").split("/")
    expected = {
        "name": (entry["name"], f"io.github.{owner}/{name}"),
        "repository.url": (entry["repository"]["url"], repository),
        "version": (entry["version"], dittybag.__version__),
        **{
            f"packages[{index}].version": (package["version"], dittybag.__version__)
            for index, package in enumerate(entry["packages"])
        },
        "mcp-name in README.md": (_marks(readme), [entry["name"]]),
    }
    return [
        f"{field} is {found}, not {right}" for field, (found, right) in expected.items() if found != right
    ]


def _marks(readme: str) -> list[str]:
    """Return the names in the README. The registry reads them to find out who owns the package."""
    return re.findall(r"mcp-name:\s*(\S+)", readme)


def _repository() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project["urls"]["Repository"])


def main() -> int:
    """Check the entry and print the result. Returns the exit status."""
    problems = find_problems(read_entry(), (ROOT / "README.md").read_text())
    for problem in problems:
        print(f"error: server.json: {problem}", file=sys.stderr)
    if not problems:
        print("server.json: names this version, this repository and the mark of the README")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
