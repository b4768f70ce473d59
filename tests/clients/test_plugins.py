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
from typing import Any, Final

import msgspec
import pytest

from dittybag.assembly.client_connections import serve_options
from dittybag.cli.prime import command as prime
from dittybag.clients.connector import Launch
from dittybag.clients.known_clients import CLIENTS
from tests.package.plugins import SKILLS, build
from tests.package.versions import ROOT

#: What may be in each file, as the vendors' references of 2026-11-18 have it: the fields of a manifest
#: (https://code.claude.com/docs/en/plugins-reference, https://developers.openai.com/codex/plugins/build,
#: https://geminicli.com/docs/extensions/reference, schemas/plugin.schema.json of github.com/cursor/plugins),
#: of a marketplace, of an entry of a server, and of a hook. A list stands for its elements.
SERVERS: Final = {"dittybag": {"type", "command", "args"}}
PLUGIN: Final = dict.fromkeys(("name", "version", "description", "author", "license", "keywords"), ...)
GROUP: Final = [{"hooks": [{"type", "command", "timeout", "name"}]}]
SHAPES: Final[dict[str, Any]] = {
    ".agents/plugins/marketplace.json": {
        "name": ...,
        "interface": {"displayName"},
        "plugins": [
            {
                "name": ...,
                "source": {"source", "path"},
                "policy": {"installation", "authentication"},
                "category": ...,
            }
        ],
    },
    ".claude-plugin/marketplace.json": {
        "name": ...,
        "owner": {"name"},
        "metadata": {"description"},
        "plugins": [{"name", "source", "description"}],
    },
    ".cursor-plugin/marketplace.json": {
        "name": ...,
        "owner": {"name"},
        "plugins": [{"name", "source", "description"}],
    },
    "plugins/claude-code/.claude-plugin/plugin.json": PLUGIN,
    "plugins/claude-code/.mcp.json": {"mcpServers": SERVERS},
    "plugins/claude-code/hooks/hooks.json": {"hooks": {"SessionStart": GROUP, "PreCompact": GROUP}},
    "plugins/codex/.codex-plugin/plugin.json": PLUGIN
    | dict.fromkeys(("skills", "mcpServers", "hooks", "interface"), ...),
    "plugins/codex/.mcp.json": {"mcpServers": SERVERS},
    "plugins/codex/hooks/hooks.json": {"hooks": {"SessionStart": GROUP}},
    "plugins/cursor/.cursor-plugin/plugin.json": PLUGIN | {"displayName": ...},
    "plugins/cursor/hooks/hooks.json": {"version": ..., "hooks": {"sessionStart": [{"command", "timeout"}]}},
    "plugins/cursor/mcp.json": {"mcpServers": SERVERS},
    "plugins/gemini/gemini-extension.json": {
        **dict.fromkeys(("name", "version", "description", "contextFileName"), ...),
        "mcpServers": SERVERS,
    },
    "plugins/gemini/hooks/hooks.json": {"hooks": {"SessionStart": GROUP}},
}


def fits(value: Any, shape: Any) -> bool:
    """Whether a value has the fields of a shape only."""
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(item, shape[0]) for item in value)
    if isinstance(shape, dict):
        return value.keys() == shape.keys() and all(fits(value[key], shape[key]) for key in shape)
    return shape is ... or (isinstance(value, dict) and value.keys() <= shape)


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
        data = json.loads((released / path).read_text())
        assert fits(data, shape), path
        for name in _named_paths(data):
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
