"""Format detection: the format of each file, or why it is skipped, from paths alone.

- A `twig.toml` at the top level decides for the whole library.
- Hidden files and folders are skipped, except `.claude/commands` and `.claude/skills` at the top level,
  because a library is often a whole repository.
- Common repository files (README, LICENSE, ...) are skipped. Top-level folders of documentation and tests
  are skipped if there is a folder for prompts next to them.
- A folder with a `SKILL.md` is a skill, and its other files belong to it. Skills inside a skill are
  separate.
- A folder with a `system.md` is a Fabric pattern, and its other files belong to it, unless the folder
  contains a whole collection or commands.
- If two files have the same key, the first in path order is used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from dittybag.library.formats.prompt_names import CONTAINERS, key_of, key_problem

TWIG: Final = "twig.toml"

_EXTENSIONS: Final = {
    "md": "markdown",
    "markdown": "markdown",
    "prompty": "prompty",
    "yaml": "llm-template",
    "yml": "llm-template",
}
# Also `README.zh-CN` and `RELEASE_NOTES_v3`. Words that could name a prompt only match in capitals.
_REPOSITORY_FILES: Final = re.compile(
    r"(?i:(?:readme|licen[cs]e|changelog|contributing|code[-_]of[-_]conduct|agents|claude|gemini|copying|copyright|"
    r"contributors|maintainers|codeowners|third[-_]party[-_](?:notices|licenses)|release[-_]notes|"
    r"pull_request_template|issue_template)(?:[-_. ](?:[a-z]{2,3}|[a-z]{2}[-_][a-z]{2,4}|v?\d[\w.]*))?)"
    r"|SECURITY|SUPPORT|HISTORY|AUTHORS|NOTICE|TODO|ROADMAP|INSTALL|INSTALLATION|CHANGES|NEWS|GOVERNANCE|CREDITS"
    r"|FAQ|CITATION|ACKNOWLEDGE?MENTS|UPGRADING|MIGRATION|RELEASES?|RELEASING|DEVELOPMENT"
    r"|[A-Z_-]+[-_]README|README[-_. ].*",
)
_PROSE: Final = frozenset({"txt", "rst", "adoc"})
_NON_PROMPT_FOLDERS: Final = frozenset({"docs", "doc", "documentation", "test", "tests"})
_CLAUDE: Final = (".claude/commands", ".claude/skills")
_SKILL: Final = "SKILL.md"
_HIDDEN: Final = "hidden (a name on its path starts with a dot)"


class _FolderRole(Struct, frozen=True):
    """How the files of a folder are treated."""

    #: Why its files are skipped, except a `SKILL.md`; empty if they are not.
    reason: str = ""
    hidden: bool = False
    pattern: bool = False
    commands: bool = False


def detect_formats(files: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The format of every file to read, and the reason for every skipped file."""
    if TWIG in files:
        return {TWIG: "twig"}, {file: _twig_skip_reason(file) for file in files if file != TWIG}
    roles = _folder_roles(files)
    formats: dict[str, str] = {}
    skipped: dict[str, str] = {}
    keys: dict[str, str] = {}
    for file in sorted(files):
        folder, _, name = file.rpartition("/")
        found, reason = _detect_format(name, folder, roles[folder])
        if found:
            key = key_of(found, file)
            # A skill at the top level is named by its front matter.
            problem = None if file == _SKILL else key_problem(key)
            if problem is not None:
                found, reason = "", f"{problem}; rename it"
            elif key in keys:
                found, reason = (
                    "",
                    f"its prompt would have the name '{key}', like {keys[key]}; rename one of them",
                )
            else:
                keys[key] = file
        if found:
            formats[file] = found
        else:
            skipped[file] = reason
    return formats, skipped


def _twig_skip_reason(file: str) -> str:
    if file.startswith("prompts/") and file.endswith(".md") and file.count("/") == 1:
        return "a template, read only if twig.toml lists its prompt"
    return "not a prompt in a library with twig.toml; templates can include it"


def _folder_roles(files: Sequence[str]) -> dict[str, _FolderRole]:
    """The role of every folder. There are fewer folders than files."""
    folders = {file.rpartition("/")[0] for file in files}
    hidden = {folder for folder in folders if _is_hidden(folder)}
    visible = folders - hidden
    skills = {file[: -len(_SKILL) - 1] for file in files if file.endswith(f"/{_SKILL}")} & visible
    if _SKILL in files:
        skills.add("")
    patterns = {file.rpartition("/")[0] for file in files if file.endswith("/system.md")}
    repository = any(
        folder.partition("/")[0] in CONTAINERS or folder.startswith("data/patterns") for folder in visible
    )
    return {
        folder: _FolderRole(reason=_HIDDEN, hidden=True)
        if folder in hidden
        else _folder_role(folder, skills, pattern=folder in patterns, repository=repository)
        for folder in folders
    }


def _folder_role(folder: str, skills: set[str], *, pattern: bool, repository: bool) -> _FolderRole:
    parts = folder.split("/")
    commands = "commands" in parts
    reason = ""
    if "node_modules" in parts:
        reason = "part of an installed package"
    elif (skill := _enclosing_skill(folder, skills)) is not None:
        reason = f"part of the skill {skill}" if skill else "part of the skill at the top level"
    elif repository and parts[0] in _NON_PROMPT_FOLDERS:
        reason = "documentation or tests"
    pattern = pattern and parts[-1] not in CONTAINERS and not commands and not reason
    return _FolderRole(reason=reason, pattern=pattern, commands=commands)


def _is_hidden(folder: str) -> bool:
    if folder in _CLAUDE or folder.startswith((".claude/commands/", ".claude/skills/")):
        folder = folder.removeprefix(".claude/")
    return folder.startswith(".") or "/." in folder


def _enclosing_skill(folder: str, skills: set[str]) -> str | None:
    """The folder of the skill that contains a folder; None if there is none."""
    if not skills:
        return None
    while folder:
        if folder in skills:
            return folder
        folder = folder.rpartition("/")[0]
    return "" if "" in skills else None


def _detect_format(name: str, folder: str, role: _FolderRole) -> tuple[str, str]:
    """The format and an empty reason, or an empty format and the reason."""
    if role.hidden or name.startswith("."):
        return "", _HIDDEN
    if name == _SKILL:
        return "skill", ""
    if role.reason:
        return "", role.reason
    if role.pattern:
        if name == "system.md":
            return "fabric", ""
        if name == "user.md":
            return "", "Fabric's user.md is not read; the user's text is the argument 'input'"
        return "", f"part of the Fabric pattern {folder}"
    stem, _, extension = name.rpartition(".")
    if not stem:
        return "", "not a prompt: the file has no extension"
    found = _EXTENSIONS.get(extension.lower())
    if (found is not None or extension.lower() in _PROSE) and _REPOSITORY_FILES.fullmatch(stem):
        return "", "documentation of the repository"
    if found is None:
        return "", f"not a prompt: .{extension} files are not read"
    if found == "markdown" and role.commands:
        return "claude-command", ""
    return found, ""
