"""Where published files go: the folder of each client, in a project or for the user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from dittybag.clients.known_clients import LocalMachine


class PublishingTarget(Struct, frozen=True, kw_only=True):
    """A client, or AGENTS.md, that prompts are published to."""

    name: str
    title: str
    #: The files of prompts, with `{}` for the name, relative to the folder of a project and of the user.
    project_file: str
    user_file: str | None
    #: The user's folder.
    user_folder: Callable[[LocalMachine], Path]
    #: The folders of skills, likewise; `None` if the target has none.
    project_skills: str | None
    user_skills: str | None
    #: The command that runs a prompt in the client; empty if there is none.
    command: str
    #: Whether prompts are skills or sections of one file.
    has_skill_names: bool = False
    is_section: bool = False

    def root(self, machine: LocalMachine, *, user: bool) -> Path:
        """The folder that the paths are relative to."""
        return self.user_folder(machine) if user else machine.current_folder


def _home(machine: LocalMachine) -> Path:
    return machine.home


TARGETS: Final = {
    target.name: target
    for target in (
        PublishingTarget(
            name="claude-code",
            title="Claude Code",
            project_file=".claude/commands/{}.md",
            user_file="commands/{}.md",
            user_folder=lambda machine: (
                machine.path_variable("CLAUDE_CONFIG_DIR") or machine.home / ".claude"
            ),
            project_skills=".claude/skills",
            user_skills="skills",
            command="/{}",
        ),
        PublishingTarget(
            name="codex",
            title="Codex",
            project_file=".agents/skills/{}/SKILL.md",
            user_file=".agents/skills/{}/SKILL.md",
            user_folder=_home,
            project_skills=".agents/skills",
            user_skills=".agents/skills",
            command="${}",
            has_skill_names=True,
        ),
        PublishingTarget(
            name="cursor",
            title="Cursor",
            project_file=".cursor/commands/{}.md",
            user_file=".cursor/commands/{}.md",
            user_folder=_home,
            project_skills=".cursor/skills",
            user_skills=None,
            command="/{}",
        ),
        PublishingTarget(
            name="gemini",
            title="Gemini CLI",
            project_file=".gemini/commands/{}.toml",
            user_file=".gemini/commands/{}.toml",
            user_folder=lambda machine: machine.path_variable("GEMINI_CLI_HOME") or machine.home,
            project_skills=".gemini/skills",
            user_skills=".gemini/skills",
            command="/{}",
        ),
        PublishingTarget(
            name="vscode",
            title="VS Code",
            project_file=".github/prompts/{}.prompt.md",
            user_file="User/prompts/{}.prompt.md",
            user_folder=lambda machine: machine.settings_folder / "Code",
            project_skills=".github/skills",
            user_skills=None,
            command="/{}",
        ),
        PublishingTarget(
            name="agents-md",
            title="AGENTS.md",
            project_file="AGENTS.md",
            user_file=None,
            user_folder=_home,
            project_skills=None,
            user_skills=None,
            command="",
            is_section=True,
        ),
    )
}
