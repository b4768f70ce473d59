"""The plugins for clients: what is released is as the vendors document it.

The vendors' own programs accept these files, too, but are too large for every test run:
`claude plugin validate --strict` and `install` (Claude Code 2.1.197), `codex plugin add` (Codex 0.169.0),
`gemini extensions validate` and `install` (Gemini CLI 0.61.0), `agentskills validate` (skills-ref 0.1.1).
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from msgspec import Struct

from dittybag.assembly.client_connections import serve_options
from dittybag.cli.prime import command as prime
from dittybag.clients.connector import Launch
from dittybag.clients.known_clients import CLIENTS
from tests.package.plugins import SKILLS, build
from tests.package.versions import ROOT


class Author(Struct, forbid_unknown_fields=True):
    name: str
    email: str = ""


class ClaudePlugin(Struct, forbid_unknown_fields=True):
    """https://code.claude.com/docs/en/plugins-reference, 2026-11-18."""

    name: str
    version: str
    description: str
    author: Author
    license: str
    keywords: list[str]


class CodexInterface(Struct, forbid_unknown_fields=True, rename="camel"):
    display_name: str
    short_description: str
    long_description: str
    developer_name: str
    category: str


class CodexPlugin(ClaudePlugin, forbid_unknown_fields=True, rename="camel"):
    """https://developers.openai.com/codex/plugins/build, 2026-11-18."""

    skills: str
    mcp_servers: str
    hooks: str
    interface: CodexInterface


class CursorPlugin(ClaudePlugin, forbid_unknown_fields=True, rename="camel"):
    """schemas/plugin.schema.json of github.com/cursor/plugins, 2026-11-18."""

    display_name: str


class StdioServer(Struct, forbid_unknown_fields=True):
    command: str
    args: list[str]
    type: Literal["stdio"] = "stdio"


class Servers(Struct, forbid_unknown_fields=True, rename="camel"):
    mcp_servers: dict[str, StdioServer]


class GeminiExtension(Servers, forbid_unknown_fields=True, rename="camel"):
    """https://geminicli.com/docs/extensions/reference, 2026-11-18."""

    name: str
    version: str
    description: str
    context_file_name: str


class Command(Struct, forbid_unknown_fields=True):
    type: Literal["command"]
    command: str
    timeout: int
    name: str = ""


class Group(Struct, forbid_unknown_fields=True):
    hooks: list[Command]


class SessionHooks(Struct, forbid_unknown_fields=True, rename="pascal"):
    session_start: list[Group]
    pre_compact: list[Group] = []


class HooksFile(Struct, forbid_unknown_fields=True):
    """The pages of the vendors are named in docs/guides/plugins.md."""

    hooks: SessionHooks


class CursorCommand(Struct, forbid_unknown_fields=True):
    command: str
    timeout: int


class CursorSessionHooks(Struct, forbid_unknown_fields=True, rename="camel"):
    session_start: list[CursorCommand]


class CursorHooksFile(Struct, forbid_unknown_fields=True):
    version: Literal[1]
    hooks: CursorSessionHooks


class ListedPlugin(Struct, forbid_unknown_fields=True):
    name: str
    source: str
    description: str


class Marketplace(Struct, forbid_unknown_fields=True):
    """https://code.claude.com/docs/en/plugin-marketplaces and https://cursor.com/docs/plugins/building."""

    name: str
    owner: Author
    plugins: list[ListedPlugin]
    metadata: dict[Literal["description"], str] = {}


class CodexSource(Struct, forbid_unknown_fields=True):
    source: Literal["local"]
    path: str


class CodexPolicy(Struct, forbid_unknown_fields=True):
    installation: Literal["AVAILABLE"]
    authentication: Literal["ON_INSTALL"]


class CodexListedPlugin(Struct, forbid_unknown_fields=True):
    name: str
    source: CodexSource
    policy: CodexPolicy
    category: str


class CodexMarketplace(Struct, forbid_unknown_fields=True):
    """https://developers.openai.com/codex/plugins/build, 2026-11-18."""

    name: str
    interface: dict[Literal["displayName"], str]
    plugins: list[CodexListedPlugin]


SHAPES: dict[str, Any] = {
    ".agents/plugins/marketplace.json": CodexMarketplace,
    ".claude-plugin/marketplace.json": Marketplace,
    ".cursor-plugin/marketplace.json": Marketplace,
    "plugins/claude-code/.claude-plugin/plugin.json": ClaudePlugin,
    "plugins/claude-code/.mcp.json": Servers,
    "plugins/claude-code/hooks/hooks.json": HooksFile,
    "plugins/codex/.codex-plugin/plugin.json": CodexPlugin,
    "plugins/codex/.mcp.json": Servers,
    "plugins/codex/hooks/hooks.json": HooksFile,
    "plugins/cursor/.cursor-plugin/plugin.json": CursorPlugin,
    "plugins/cursor/hooks/hooks.json": CursorHooksFile,
    "plugins/cursor/mcp.json": Servers,
    "plugins/gemini/gemini-extension.json": GeminiExtension,
    "plugins/gemini/hooks/hooks.json": HooksFile,
}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what is released."""
    folder = tmp_path_factory.mktemp("plugins")
    build(folder)
    return folder


def test_every_manifest_has_the_documented_fields_only(released: Path) -> None:
    paths = {file.relative_to(released).as_posix() for file in released.rglob("*.json")}
    assert paths == set(SHAPES)
    for path, shape in SHAPES.items():
        data = (released / path).read_bytes()
        msgspec.json.decode(data, type=shape)
        for name in _named_paths(json.loads(data)):
            folder = (
                released if path.endswith("marketplace.json") else released.joinpath(*path.split("/")[:2])
            )
            assert (folder / name).exists(), (path, name)


def test_every_plugin_has_the_skills_and_starts_what_connect_starts(released: Path) -> None:
    expected = {file.relative_to(SKILLS): file.read_text() for file in SKILLS.rglob("*.md")}
    assert len(expected) == 2
    options = {option.opts[0]: option for option in prime.params}
    for client in ("claude-code", "codex", "cursor", "gemini"):
        skills = released / "plugins" / client / "skills"
        assert {file.relative_to(skills): file.read_text() for file in skills.rglob("*.md")} == expected
        files = [released / path for path in SHAPES if path.startswith(f"plugins/{client}/")]
        texts = [file.read_text() for file in files]
        (servers,) = [json.loads(text)["mcpServers"] for text in texts if '"mcpServers": {' in text]
        entry = Launch("dittybag", (), ("serve", *serve_options({}))).entry(CLIENTS[client])
        assert servers == {"dittybag": entry}
        (hooks,) = [text for text in texts if '"hooks": {' in text]
        commands = re.findall(r'"command": "dittybag prime (.+)"', hooks)
        assert commands
        for command in commands:
            words = shlex.split(command)
            given = dict(zip(words[::2], words[1::2], strict=True))
            assert all(options[name].type(value) == value for name, value in given.items())
            assert given["--actor"].startswith(client.partition("-")[0])


def _named_paths(manifest: dict[str, Any]) -> Iterator[str]:
    """The files and folders that a manifest names."""
    for plugin in manifest.get("plugins", ()):
        source = plugin["source"]
        yield source if isinstance(source, str) else source["path"]
    for key in ("skills", "mcpServers", "hooks", "contextFileName"):
        if isinstance(manifest.get(key), str):
            yield manifest[key]


@pytest.mark.parametrize("skill", sorted(SKILLS.iterdir()), ids=lambda folder: folder.name)
def test_skills_follow_the_specification_and_name_real_tools(skill: Any) -> None:
    """https://agentskills.io/specification, 2026-11-18."""
    _, header, body = (skill / "SKILL.md").read_text().split("---\n", 2)
    fields = msgspec.yaml.decode(header)
    assert set(fields) == {"name", "description"}
    assert fields["name"] == skill.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", skill.name)
    assert 100 < len(fields["description"]) <= 1024
    assert len(body.splitlines()) < 500
    reference = (ROOT / "docs/reference/agent-tools.md").read_text()
    tools = set(re.findall(r"^## `(\w+)`$", reference, re.MULTILINE))
    arguments = set(re.findall(r"^\| `(\w+)` \|", reference, re.MULTILINE))
    codes = set(re.findall(r"^\| `([A-Z_]+)` \|", reference, re.MULTILINE))
    words = set(re.findall(r"`([A-Za-z_]+)(?:: [^`]*)?`", body))
    assert len(words & tools) >= 5
    assert words <= tools | arguments | codes | {"key", "library"}, words - tools - arguments - codes
