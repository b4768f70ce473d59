"""The clients that Dittybag knows: where each keeps its configuration, and in which shape."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from dittybag.clients.config_format import Format
from dittybag.clients.json_format import JsonFormat
from dittybag.clients.toml_format import TomlFormat

Scope = Literal["user", "project"]
SCOPES: Final[tuple[Scope, ...]] = ("user", "project")

_MCP_SERVERS: Final = JsonFormat("mcpServers")
#: What most clients replace by the value of a variable.
_BRACED: Final = r"\$\{"


class Machine(Struct, frozen=True):
    """Where programs run: what decides in which folder a client looks."""

    environ: Mapping[str, str]
    #: As `sys.platform` has it.
    platform: str
    home: Path
    #: Where the user is now.
    folder: Path

    def variable(self, name: str) -> Path | None:
        """A folder that a variable names."""
        value = self.environ.get(name)
        return Path(value) if value and "\0" not in value else None

    @property
    def applications(self) -> Path:
        """Where programs with windows keep their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return self.variable("APPDATA") or self.home / "AppData" / "Roaming"
        return self.variable("XDG_CONFIG_HOME") or self.home / ".config"


class Client(Struct, frozen=True, kw_only=True):
    """A program that starts MCP servers."""

    name: str
    title: str
    #: What it is called on the command line.
    programs: tuple[str, ...] = ()
    #: Where its user's file is, and what that is called there.
    folder: Callable[[Machine], Path]
    user_file: str
    #: A folder that says that it is here, if that is another one.
    trace: Callable[[Machine], Path] | None = None
    #: Its file in a project's folder, if it has one.
    project_file: str | None = None
    format: Format = _MCP_SERVERS
    #: Whether an entry says that its server speaks on standard input and output.
    is_typed: bool = False
    #: What in an entry would be replaced by something else, as a regular expression.
    replaced: str = _BRACED
    #: What its user does next, and what is to be known in a project.
    next_step: str
    in_projects: str = ""

    def file(self, scope: Scope, machine: Machine) -> Path | None:
        """Its configuration file, whether it exists or not; nothing if it has none of this scope."""
        if scope == "user":
            return self.folder(machine) / self.user_file
        return None if self.project_file is None else machine.folder / self.project_file

    def is_found(self, machine: Machine) -> bool:
        """Whether it seems to be on this machine."""
        path = machine.environ.get("PATH", "")
        if any(shutil.which(program, path=path) for program in self.programs):
            return True
        trace = self.trace or self.folder
        return trace(machine).exists() or (self.folder(machine) / self.user_file).exists()

    def would_replace(self, text: str) -> bool:
        """Whether it would not take this text as it is written."""
        return re.search(self.replaced, text) is not None


def _claude_desktop(machine: Machine) -> Path:
    if machine.platform == "win32":
        # A package in the new form gets a folder of its own in place of the usual one, and sees no other.
        packages = (machine.variable("LOCALAPPDATA") or machine.home / "AppData" / "Local") / "Packages"
        for roaming in sorted(packages.glob("Claude_*/LocalCache/Roaming")):
            return roaming / "Claude"
    return machine.applications / "Claude"


def _zed(machine: Machine) -> Path:
    if machine.platform == "darwin":
        return machine.home / ".config" / "zed"
    return machine.applications / ("Zed" if machine.platform == "win32" else "zed")


CLIENTS: Final = {
    client.name: client
    for client in (
        Client(
            name="claude-code",
            title="Claude Code",
            programs=("claude",),
            folder=lambda machine: machine.variable("CLAUDE_CONFIG_DIR") or machine.home,
            user_file=".claude.json",
            trace=lambda machine: machine.variable("CLAUDE_CONFIG_DIR") or machine.home / ".claude",
            is_typed=True,
            project_file=".mcp.json",
            next_step="start a new session of Claude Code; /mcp lists its servers",
            in_projects="Claude Code asks once whether to use the servers of a project",
        ),
        Client(
            name="claude-desktop",
            title="Claude Desktop",
            folder=_claude_desktop,
            user_file="claude_desktop_config.json",
            next_step="quit Claude Desktop and start it again",
        ),
        Client(
            name="cursor",
            title="Cursor",
            programs=("cursor", "cursor-agent"),
            folder=lambda machine: machine.home / ".cursor",
            user_file="mcp.json",
            is_typed=True,
            project_file=".cursor/mcp.json",
            next_step="look into Cursor's settings, Tools & MCP: the server must be switched on there",
        ),
        Client(
            name="vscode",
            title="VS Code",
            programs=("code",),
            folder=lambda machine: machine.applications / "Code",
            user_file="User/mcp.json",
            format=JsonFormat("servers"),
            is_typed=True,
            project_file=".vscode/mcp.json",
            next_step="run the command 'MCP: List Servers' in VS Code and start the server there",
        ),
        Client(
            name="codex",
            title="Codex",
            programs=("codex",),
            folder=lambda machine: machine.variable("CODEX_HOME") or machine.home / ".codex",
            user_file="config.toml",
            format=TomlFormat("mcp_servers"),
            project_file=".codex/config.toml",
            # Codex takes every text as it is.
            replaced=r"(?!)",
            next_step="start Codex again; /mcp lists its servers",
            in_projects="Codex reads this file only in projects that it has been told to trust",
        ),
        Client(
            name="gemini",
            title="Gemini CLI",
            programs=("gemini",),
            folder=lambda machine: (machine.variable("GEMINI_CLI_HOME") or machine.home) / ".gemini",
            user_file="settings.json",
            project_file=".gemini/settings.json",
            replaced=r"\$\{|\$\w|%\w+%",
            next_step="start Gemini CLI again; /mcp lists its servers",
            in_projects="Gemini CLI reads this file only in folders that it has been told to trust",
        ),
        Client(
            name="windsurf",
            title="Windsurf",
            programs=("windsurf",),
            folder=lambda machine: machine.home / ".codeium" / "windsurf",
            user_file="mcp_config.json",
            next_step="refresh the MCP servers in Windsurf's Cascade panel, or start Windsurf again",
        ),
        Client(
            name="zed",
            title="Zed",
            programs=("zed", "zeditor"),
            folder=_zed,
            user_file="settings.json",
            format=JsonFormat("context_servers"),
            project_file=".zed/settings.json",
            # Zed takes every text as it is.
            replaced=r"(?!)",
            next_step="look into the settings of Zed's agent panel: a green dot says that the server runs",
            in_projects="Zed starts the servers of a project only if you trust its folder",
        ),
    )
}
