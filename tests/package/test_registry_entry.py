"""The MCP registry accepts `server.json`, and the command that it describes starts Dittybag."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dittybag
from tests.package.distributions import Distributions
from tests.package.registry_entry import find_problems, read_entry
from tests.package.test_distributions import metadata
from tests.stdio_server_process import ROOT, StdioServerProcess

README = (ROOT / "README.md").read_text()


def test_the_entry_names_this_version() -> None:
    assert find_problems(read_entry(), README) == []


def test_the_package_index_shows_the_mark_that_the_registry_looks_for(distributions: Distributions) -> None:
    assert find_problems(read_entry(), str(metadata(distributions).get_payload())) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"version": "9.9.9"}, f"version is 9.9.9, not {dittybag.__version__}"),
        ({"name": "io.github.else/dittybag"}, "name is io.github.else/dittybag"),
    ],
)
def test_a_wrong_entry_is_found(change: dict[str, Any], problem: str) -> None:
    problems = find_problems({**read_entry(), **change}, README)
    assert any(problem in found for found in problems), problems


def test_the_mark_in_the_readme_must_be_the_name_of_the_entry() -> None:
    name = read_entry()["name"]
    assert find_problems(read_entry(), README.replace(name, "io.github.else/dittybag"))


def test_the_command_of_the_entry_starts_a_server(tmp_path: Path) -> None:
    (package,) = read_entry()["packages"]
    arguments = [
        text for part in package["packageArguments"] for text in (part.get("name"), part["value"]) if text
    ]
    folder = {"DITTYBAG_HOME": str(tmp_path)}
    with StdioServerProcess("dittybag", *arguments, env=folder, cwd=tmp_path) as server:
        assert server.handshake()["serverInfo"]["version"] == package["version"]


def test_the_settings_of_the_entry_are_documented() -> None:
    settings = (ROOT / "docs" / "reference" / "settings.md").read_text()
    (package,) = read_entry()["packages"]
    for variable in package["environmentVariables"]:
        assert f"`{variable['name']}`" in settings, json.dumps(variable)
