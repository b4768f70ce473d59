"""The entry of the MCP registry, `server.json`: `python -m tests.package.registry_entry` checks it."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from typing import Any, Final

from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]
from jsonschema.exceptions import ValidationError, best_match  # type: ignore[import-untyped]

import dittybag
from tests.package.registry_schema import SCHEMA
from tests.stdio_server_process import ROOT

FILE: Final = ROOT / "server.json"


def read_entry() -> dict[str, Any]:
    entry: dict[str, Any] = json.loads(FILE.read_text())
    return entry


def find_problems(entry: dict[str, Any], readme: str) -> list[str]:
    """Return what keeps the registry from accepting this entry, with this README on the package index."""
    validator = Draft202012Validator(SCHEMA, format_checker=FormatChecker())
    problems = [_describe(error) for error in validator.iter_errors(entry)]
    if problems:
        return problems
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


def _describe(error: ValidationError) -> str:
    # Of several alternatives, the one that the entry is closest to.
    closest = best_match([error]) or error
    return f"{closest.json_path}: {closest.message}"


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
        print("server.json: follows the rules of the registry's schema of 2025-12-11")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
