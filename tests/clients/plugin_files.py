"""The files of the plugins for clients; `python -m tests.clients.plugin_files` writes them.

The skills in plugins/skills are written by hand; everything else in plugins, and the marketplaces that name
the plugins, is generated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dittybag import __version__
from dittybag.clients.connector import Launch
from dittybag.clients.hooks import hook_command
from dittybag.clients.known_clients import CLIENTS
from dittybag.clients.known_hooks import HOOKS
from dittybag.config import CONNECTED_PROFILE
from dittybag.domain.projects import AUTOMATIC

ROOT: Final = Path(__file__).parents[2]
SKILLS: Final = ROOT / "plugins" / "skills"
#: Folders with generated files only.
GENERATED: Final = (
    *(f"plugins/{client}" for client in ("claude-code", "codex", "cursor", "gemini")),
    ".claude-plugin",
    ".agents",
    ".cursor-plugin",
)
#: As `dittybag connect` writes it, with the program that is found on PATH.
LAUNCH: Final = Launch("dittybag", (), ("serve", "--project", AUTOMATIC, "--profile", CONNECTED_PROFILE))
NAME: Final = "dittybag"
DESCRIPTION: Final = (
    "Prompts, resources and tasks that you share with your agents, handed to each session when it starts"
)
AUTHOR: Final = {"name": "The Dittybag authors"}
KEYWORDS: Final = ["mcp", "prompts", "tasks", "context"]
CONTEXT: Final = """\
# Dittybag

Dittybag keeps the prompts, documents and tasks of the user and of other agents. Use its tools unasked:

- `search` before you say that a prompt, document or task does not exist, and before you create one.
- `use_prompt` when the user names a prompt.
- `task_next` to take work, `task_done` with a comment when it ends, `task_add` for what is to be done later.

The skills `dittybag-tasks` and `dittybag-prompts` say more.
"""


def plugin_files() -> dict[str, str]:
    """The text of every generated file, by its path in the repository."""
    data = _manifests() | _servers() | _hooks() | _marketplaces()
    texts = {path: json.dumps(value, indent=2, ensure_ascii=False) + "\n" for path, value in data.items()}
    for skill in sorted(SKILLS.glob("*/SKILL.md")):
        for client in ("claude-code", "codex", "cursor", "gemini"):
            texts[f"plugins/{client}/skills/{skill.parent.name}/SKILL.md"] = skill.read_text()
    header = f"---\ndescription: {DESCRIPTION}\nalwaysApply: true\n---\n\n"
    texts["plugins/gemini/GEMINI.md"] = CONTEXT
    texts["plugins/cursor/rules/dittybag.mdc"] = header + CONTEXT
    return texts


def _manifests() -> dict[str, Any]:
    manifest = {"name": NAME, "version": __version__, "description": DESCRIPTION}
    more = {"author": AUTHOR, "license": "Apache-2.0", "keywords": KEYWORDS}
    return {
        "plugins/claude-code/.claude-plugin/plugin.json": {**manifest, **more},
        "plugins/codex/.codex-plugin/plugin.json": {
            **manifest,
            **more,
            "skills": "./skills/",
            "mcpServers": "./.mcp.json",
            "hooks": "./hooks/hooks.json",
            "interface": {
                "displayName": "Dittybag",
                "shortDescription": "Shared prompts, resources and tasks",
                "longDescription": DESCRIPTION,
                "developerName": AUTHOR["name"],
                "category": "Productivity",
            },
        },
        "plugins/cursor/.cursor-plugin/plugin.json": {**manifest, "displayName": "Dittybag", **more},
        "plugins/gemini/gemini-extension.json": {
            **manifest,
            "contextFileName": "GEMINI.md",
            "mcpServers": _server("gemini"),
        },
    }


def _servers() -> dict[str, Any]:
    files = {"claude-code": ".mcp.json", "codex": ".mcp.json", "cursor": "mcp.json"}
    return {f"plugins/{client}/{file}": {"mcpServers": _server(client)} for client, file in files.items()}


def _server(client: str) -> Mapping[str, Any]:
    return {NAME: LAUNCH.entry(CLIENTS[client])}


def _hooks() -> dict[str, Any]:
    files = {}
    for client in ("claude-code", "codex", "cursor", "gemini"):
        hooks = HOOKS[client]
        value = hooks.value(hook_command(LAUNCH, hooks, "linux"))
        events = {event: [value] for event in hooks.events}
        files[f"plugins/{client}/hooks/hooks.json"] = {**hooks.header, "hooks": events}
    return files


def _marketplaces() -> dict[str, Any]:
    plugin = {"name": NAME, "description": DESCRIPTION}
    return {
        ".claude-plugin/marketplace.json": {
            "name": NAME,
            "owner": AUTHOR,
            "metadata": {"description": DESCRIPTION},
            "plugins": [{**plugin, "source": "./plugins/claude-code"}],
        },
        ".cursor-plugin/marketplace.json": {
            "name": NAME,
            "owner": AUTHOR,
            "plugins": [{**plugin, "source": "plugins/cursor"}],
        },
        ".agents/plugins/marketplace.json": {
            "name": NAME,
            "interface": {"displayName": "Dittybag"},
            "plugins": [
                {
                    "name": NAME,
                    "source": {"source": "local", "path": "./plugins/codex"},
                    "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                    "category": "Productivity",
                }
            ],
        },
    }


if __name__ == "__main__":
    for name, text in plugin_files().items():
        file = ROOT / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
