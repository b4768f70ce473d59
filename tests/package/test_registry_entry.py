"""`server.json`, the entry of the MCP registry, agrees with the package and starts it."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

from tests.package.distributions import Distributions
from tests.package.test_distributions import metadata
from tests.stdio_server_process import ROOT, StdioServerProcess

ENTRY: Final[dict[str, Any]] = json.loads((ROOT / "server.json").read_text())
PACKAGE: Final[dict[str, Any]] = ENTRY["packages"][0]


def test_the_entry_names_this_repository() -> None:
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    assert ENTRY["repository"]["url"] == repository
    assert ENTRY["name"] == "io." + repository.removeprefix("https://").replace(".com/", ".", 1)


def test_the_package_index_shows_the_mark_that_the_registry_looks_for(distributions: Distributions) -> None:
    """The registry reads it to find out who owns the package."""
    for text in ((ROOT / "README.md").read_text(), str(metadata(distributions).get_payload())):
        assert re.findall(r"mcp-name:\s*(\S+)", text) == [ENTRY["name"]]


def test_the_command_of_the_entry_starts_a_server(tmp_path: Path) -> None:
    arguments = [
        text for part in PACKAGE["packageArguments"] for text in (part.get("name"), part["value"]) if text
    ]
    folder = {"DITTYBAG_HOME": str(tmp_path)}
    with StdioServerProcess("dittybag", *arguments, env=folder, cwd=tmp_path) as server:
        assert server.handshake()["serverInfo"]["version"] == PACKAGE["version"] == ENTRY["version"]


def test_the_settings_of_the_entry_are_documented() -> None:
    settings = (ROOT / "docs" / "reference" / "settings.md").read_text()
    for variable in PACKAGE["environmentVariables"]:
        assert f"`{variable['name']}`" in settings, json.dumps(variable)
