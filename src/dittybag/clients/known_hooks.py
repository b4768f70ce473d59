"""The hooks of the clients that Dittybag knows: their files, events and formats, as documented.

Only events are listed whose output reaches the model. A hook that runs before a conversation is compacted
does so in Claude Code alone; in Codex, `SessionStart` runs again after it. Windsurf's hooks cannot add to
the conversation (https://docs.windsurf.com/windsurf/cascade/hooks, 2026-11-18); Claude Desktop and Zed
document none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from dittybag.clients.hook_output import HookOutput
from dittybag.clients.known_clients import ConfigScope, LocalMachine

#: A hook that takes longer is stopped; `dittybag prime` takes a small part of this.
_TIMEOUT_SECONDS: Final = 10


class ClientHooks(Struct, frozen=True, kw_only=True):
    """How a client runs commands at the start of a session and before it is compacted."""

    user_file: Callable[[LocalMachine], Path]
    project_file: str
    #: What each event gets from the hook, in the order in which they are written.
    events: Mapping[str, str]
    output: HookOutput = "text"
    #: What the client calls itself over MCP, and so in the change log.
    actor: str
    #: Whether commands are in groups, which may have a `matcher`: `{"hooks": [command, ...]}`.
    is_grouped: bool = True
    #: Whether a command contains `"type": "command"`.
    has_type_field: bool = True
    has_name_field: bool = False
    timeout: int = _TIMEOUT_SECONDS
    #: Members that a new file begins with.
    header: Mapping[str, Any] = {}
    #: What the user has to do before the hooks run, or what they should know.
    note: str = ""
    source: str
    #: When the source was read.
    checked: str = "2026-11-18"

    def file(self, scope: ConfigScope, machine: LocalMachine) -> Path:
        """The path of the file, which may not exist."""
        return self.user_file(machine) if scope == "user" else machine.current_folder / self.project_file

    def value(self, command: str) -> dict[str, Any]:
        """The hook that runs a command."""
        handler: dict[str, Any] = {"name": "dittybag"} if self.has_name_field else {}
        handler |= {"type": "command"} if self.has_type_field else {}
        handler |= {"command": command, "timeout": self.timeout}
        return {"hooks": [handler]} if self.is_grouped else handler


_CONTEXT: Final = "added to the conversation"

HOOKS: Final[Mapping[str, ClientHooks]] = {
    "claude-code": ClientHooks(
        actor="claude-code",
        user_file=lambda machine: (
            (machine.path_variable("CLAUDE_CONFIG_DIR") or machine.home / ".claude") / "settings.json"
        ),
        project_file=".claude/settings.json",
        # SessionStart runs at the start, on /resume and /clear, and after compaction.
        events={"SessionStart": _CONTEXT, "PreCompact": "instructions for the summary"},
        source="https://code.claude.com/docs/en/hooks; the output of PreCompact: /hooks of Claude Code 2.1",
    ),
    "codex": ClientHooks(
        actor="codex-mcp-client",
        user_file=lambda machine: (
            (machine.path_variable("CODEX_HOME") or machine.home / ".codex") / "hooks.json"
        ),
        project_file=".codex/hooks.json",
        events={"SessionStart": _CONTEXT},
        note="Codex runs a new hook only after you have trusted it: start Codex and run /hooks",
        source="https://developers.openai.com/codex/hooks",
    ),
    "gemini": ClientHooks(
        actor="gemini-cli-mcp-client",
        user_file=lambda machine: (
            (machine.path_variable("GEMINI_CLI_HOME") or machine.home) / ".gemini" / "settings.json"
        ),
        project_file=".gemini/settings.json",
        events={"SessionStart": _CONTEXT},
        output="hook",
        has_name_field=True,
        timeout=_TIMEOUT_SECONDS * 1000,
        source="https://geminicli.com/docs/hooks/reference",
    ),
    "cursor": ClientHooks(
        actor="cursor-vscode",
        user_file=lambda machine: machine.home / ".cursor" / "hooks.json",
        project_file=".cursor/hooks.json",
        events={"sessionStart": _CONTEXT},
        output="cursor",
        is_grouped=False,
        has_type_field=False,
        header={"version": 1},
        note="Cursor's editor has lost the output of this hook in some versions; cursor-agent adds it",
        source="https://cursor.com/docs/agent/hooks",
    ),
    "vscode": ClientHooks(
        actor="Visual Studio Code",
        user_file=lambda machine: machine.home / ".copilot" / "hooks" / "dittybag.json",
        project_file=".github/hooks/dittybag.json",
        events={"SessionStart": _CONTEXT},
        output="hook",
        is_grouped=False,
        note="hooks are a preview in VS Code; it also runs those in .claude/settings.json",
        source="https://code.visualstudio.com/docs/agent-customization/hooks",
    ),
}
