"""The clients that Dittybag knows, with the location and format of their configuration files."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from dittybag.clients.config_format import ConfigFormat
from dittybag.clients.json_format import JsonFormat
from dittybag.clients.toml_format import TomlFormat

ConfigScope = Literal["user", "project"]
SCOPES: Final[tuple[ConfigScope, ...]] = ("user", "project")

_MCP_SERVERS: Final = JsonFormat("mcpServers")
#: Most clients expand `${NAME}` to the value of a variable.
_BRACED: Final = r"\$\{"


class LocalMachine(Struct, frozen=True):
    """The platform, environment variables and folders that determine where clients look for their files."""

    environ: Mapping[str, str]
    #: A value of `sys.platform`.
    platform: str
    home: Path
    current_folder: Path

    def path_variable(self, name: str) -> Path | None:
        """The value of an environment variable as a path; `None` if it is unset or empty."""
        value = self.environ.get(name)
        return Path(value) if value and "\0" not in value else None

    @property
    def settings_folder(self) -> Path:
        """The folder in which desktop applications store their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.path_variable("XDG_CONFIG_HOME") or self.home / ".config"


class McpClient(Struct, frozen=True, kw_only=True):
    """A program that starts MCP servers."""

    name: str
    title: str
    #: Names of its executables.
    programs: tuple[str, ...] = ()
    #: The folder of the user's configuration file, and the path of the file below it.
    user_folder: Callable[[LocalMachine], Path]
    user_file: str
    #: A folder that exists if the client is installed; by default `user_folder`.
    detection_folder: Callable[[LocalMachine], Path] | None = None
    #: The configuration file in a project's folder, or `None` if the client has none.
    project_file: str | None = None
    format: ConfigFormat = _MCP_SERVERS
    #: Whether entries contain `"type": "stdio"`.
    has_type_field: bool = False
    #: A regular expression for the parts of a value that the client would expand.
    expansion_pattern: str = _BRACED
    #: What the user does next, and a note for project files.
    next_step: str
    project_note: str = ""

    def file(self, scope: ConfigScope, machine: LocalMachine) -> Path | None:
        """The path of the configuration file, which may not exist; `None` if this scope has no file."""
        if scope == "user":
            return self.user_folder(machine) / self.user_file
        return None if self.project_file is None else machine.current_folder / self.project_file

    def is_installed(self, machine: LocalMachine, created: Collection[Path] = ()) -> bool:
        """Whether the client seems to be installed: its executable, folder or file exists.

        `created`: files and folders that Dittybag has created. They do not count.
        """
        path = machine.environ.get("PATH", "")
        if any(shutil.which(program, path=path) for program in self.programs):
            return True
        detection_folder = self.detection_folder or self.user_folder
        paths = (detection_folder(machine), self.user_folder(machine) / self.user_file)
        return any(_exists_besides(path, created) for path in paths)

    def would_expand(self, text: str) -> bool:
        """Whether the client would expand a variable in this text."""
        return re.search(self.expansion_pattern, text) is not None


def _exists_besides(path: Path, created: Collection[Path]) -> bool:
    """Whether a path exists, and is not one of these files or a folder that holds nothing else."""
    if path.resolve() not in created:
        return path.exists()
    return path.is_dir() and any(_exists_besides(child, created) for child in path.iterdir())


CLIENTS: Final = {
    client.name: client
    for client in (
        McpClient(
            name="claude-code",
            title="Claude Code",
            programs=("claude",),
            user_folder=lambda machine: machine.path_variable("CLAUDE_CONFIG_DIR") or machine.home,
            user_file=".claude.json",
            detection_folder=lambda machine: (
                machine.path_variable("CLAUDE_CONFIG_DIR") or machine.home / ".claude"
            ),
            has_type_field=True,
            project_file=".mcp.json",
            next_step="start a new Claude Code session; /mcp lists the servers",
            project_note="Claude Code asks once whether to use the servers of a project",
        ),
        McpClient(
            name="claude-desktop",
            title="Claude Desktop",
            user_folder=lambda machine: machine.settings_folder / "Claude",
            user_file="claude_desktop_config.json",
            next_step="quit and restart Claude Desktop",
        ),
        McpClient(
            name="cursor",
            title="Cursor",
            programs=("cursor", "cursor-agent"),
            user_folder=lambda machine: machine.home / ".cursor",
            user_file="mcp.json",
            has_type_field=True,
            project_file=".cursor/mcp.json",
            next_step="open Cursor's settings, Tools & MCP, and check that the server is enabled",
        ),
        McpClient(
            name="vscode",
            title="VS Code",
            programs=("code",),
            user_folder=lambda machine: machine.settings_folder / "Code",
            user_file="User/mcp.json",
            format=JsonFormat("servers"),
            has_type_field=True,
            project_file=".vscode/mcp.json",
            next_step="run the command 'MCP: List Servers' in VS Code and start the server",
        ),
        McpClient(
            name="codex",
            title="Codex",
            programs=("codex",),
            user_folder=lambda machine: machine.path_variable("CODEX_HOME") or machine.home / ".codex",
            user_file="config.toml",
            format=TomlFormat("mcp_servers"),
            project_file=".codex/config.toml",
            # Codex expands no variables.
            expansion_pattern=r"(?!)",
            next_step="restart Codex; /mcp lists the servers",
            project_note="Codex reads this file only in projects that you have marked as trusted",
        ),
        McpClient(
            name="gemini",
            title="Gemini CLI",
            programs=("gemini",),
            user_folder=lambda machine: (
                (machine.path_variable("GEMINI_CLI_HOME") or machine.home) / ".gemini"
            ),
            user_file="settings.json",
            project_file=".gemini/settings.json",
            expansion_pattern=r"\$\{|\$\w|%\w+%",
            next_step="restart Gemini CLI; /mcp lists the servers",
            project_note="Gemini CLI reads this file only in folders that you have marked as trusted",
        ),
        McpClient(
            name="windsurf",
            title="Windsurf",
            programs=("windsurf",),
            user_folder=lambda machine: machine.home / ".codeium" / "windsurf",
            user_file="mcp_config.json",
            next_step="refresh the MCP servers in Windsurf's Cascade panel, or restart Windsurf",
        ),
        McpClient(
            name="zed",
            title="Zed",
            programs=("zed", "zeditor"),
            user_folder=lambda machine: (
                (machine.home / ".config" if machine.platform == "darwin" else machine.settings_folder)
                / "zed"
            ),
            user_file="settings.json",
            format=JsonFormat("context_servers"),
            project_file=".zed/settings.json",
            # Zed expands no variables.
            expansion_pattern=r"(?!)",
            next_step="open the settings of Zed's agent panel; a green dot shows that the server is running",
            project_note="Zed starts the servers of a project only if you trust its folder",
        ),
    )
}
