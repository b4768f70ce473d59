"""The bundle for desktop clients is valid, says what the server serves, and starts it."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from uv import find_uv_bin

import dittybag
from tests.interop.environments import MCPB
from tests.package.bundle import MANIFEST, SOURCE, pack, server_command, validate
from tests.package.distributions import Distributions
from tests.package.installation import uv_environment
from tests.programs import skip_unless_ci
from tests.stdio_server_process import ROOT, StdioServerProcess

PROFILE = "agent"


@pytest.fixture
def _packer() -> None:
    if not MCPB.is_installed:
        skip_unless_ci(f"needs {MCPB.title} (python -m tests.interop.environments {MCPB.name})")


def manifest() -> dict[str, Any]:
    contents: dict[str, Any] = json.loads(MANIFEST.read_text())
    return contents


def initialize(command: list[str], environment: dict[str, str], folder: Path) -> list[dict[str, Any]]:
    """Start a server, and return its responses to `initialize`, `tools/list` and `prompts/list`."""
    requests = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "prompts/list"},
    ]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input="".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in requests),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line)["result"] for line in done.stdout.splitlines()]


def test_the_manifest_says_what_the_server_serves(tmp_path: Path) -> None:
    written = manifest()
    assert written["version"] == dittybag.__version__
    folder = {"DITTYBAG_HOME": str(tmp_path)}
    with StdioServerProcess("dittybag", "serve", "--profile", PROFILE, env=folder, cwd=tmp_path) as server:
        server.handshake()
        tools = server.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})["result"]["tools"]
        prompts = server.ask({"jsonrpc": "2.0", "id": 2, "method": "prompts/list"})["result"]["prompts"]
    assert written["tools"] == [{"name": tool["name"], "description": tool["title"]} for tool in tools]
    # Prompts are the user's own, so the manifest names none and says that there may be some.
    assert prompts == written.get("prompts", [])
    assert written["prompts_generated"]
    assert written["user_config"]["profile"]["default"] == PROFILE


def test_every_setting_of_the_manifest_has_a_default_and_is_passed_on() -> None:
    written = manifest()
    variables = written["server"]["mcp_config"]["env"]
    # A client leaves a reference to a setting without value and default as it is.
    assert all("default" in setting for setting in written["user_config"].values())
    assert set(variables.values()) == {f"${{user_config.{name}}}" for name in written["user_config"]}
    reference = (ROOT / "docs" / "reference" / "settings.md").read_text()
    assert all(f"`{name}`" in reference for name in variables)


def test_the_icon_has_the_size_that_clients_recommend() -> None:
    with Image.open(SOURCE / manifest()["icon"]) as icon:
        assert (icon.format, icon.size) == ("PNG", (512, 512))


@pytest.mark.usefixtures("_packer")
def test_the_packer_accepts_the_manifest_and_its_bundle_starts(
    distributions: Distributions, tmp_path: Path
) -> None:
    assert "Manifest schema validation passes!" in validate()
    bundle, extension, home = (tmp_path / name for name in ("dittybag.mcpb", "extension", "home"))
    pack(distributions.wheel, bundle)
    home.mkdir()
    with zipfile.ZipFile(bundle) as archive:
        contents = {"manifest.json", "main.py", "icon.png", "pyproject.toml", distributions.wheel.name}
        assert set(archive.namelist()) == contents
        archive.extractall(extension)
    command, variables = server_command(extension, {"read_only": True})
    uv = Path(find_uv_bin())
    environment = {**uv_environment(), "HOME": str(home), "PATH": f"{uv.parent}{os.pathsep}/usr/bin:/bin"}
    initialized, tools, _ = initialize(command, {**environment, **variables}, home)
    assert initialized["serverInfo"]["version"] == dittybag.__version__
    listed = {tool["name"] for tool in tools["tools"]}
    # Tools that write are hidden.
    assert {"search", "read"} <= listed < {tool["name"] for tool in manifest()["tools"]}
    # A client that manages uv itself runs the entry point alone.
    program = [str(extension / ".venv" / "bin" / "python"), str(extension / "main.py")]
    assert len(initialize(program, environment, home)[1]["tools"]) == len(manifest()["tools"])
