"""Recognising files: which format each is, or why it is skipped, from their paths alone.

- A `twig.toml` at the top decides for the whole library.
- Hidden files and folders are skipped, except `.claude/commands` and `.claude/skills` at the top: people
  point at the root of a repository.
- Files that every repository has (README, LICENSE, ...) are skipped, and so are folders of documentation
  and tests at the top if a folder that is made for prompts lies beside them.
- A folder with a `SKILL.md` is a skill and its other files belong to it; other skills inside are skills of
  their own.
- A folder with a `system.md` is a Fabric pattern and its other files belong to it, unless the folder is one
  that holds a whole collection or a folder of commands.
- Of two files with the same key, the first in the order of their paths counts.
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
    "prompt": "dotprompt",
    "prompty": "prompty",
    "yaml": "llm-template",
    "yml": "llm-template",
}
# `README.zh-CN` and `RELEASE_NOTES_v3` too. Only in capitals where the word could also name a prompt.
_ABOUT: Final = re.compile(
    r"(?i:(?:readme|licen[cs]e|changelog|contributing|code[-_]of[-_]conduct|agents|claude|gemini|copying|copyright|"
    r"contributors|maintainers|codeowners|third[-_]party[-_](?:notices|licenses)|release[-_]notes|"
    r"pull_request_template|issue_template)(?:[-_. ](?:[a-z]{2,3}|[a-z]{2}[-_][a-z]{2,4}|v?\d[\w.]*))?)"
    r"|SECURITY|SUPPORT|HISTORY|AUTHORS|NOTICE|TODO|ROADMAP|INSTALL|INSTALLATION|CHANGES|NEWS|GOVERNANCE|CREDITS"
    r"|FAQ|CITATION|ACKNOWLEDGE?MENTS|UPGRADING|MIGRATION|RELEASES?|RELEASING|DEVELOPMENT"
    r"|[A-Z_-]+[-_]README|README[-_. ].*",
)
_PROSE: Final = frozenset({"txt", "rst", "adoc"})
_BESIDE: Final = frozenset({"docs", "doc", "documentation", "test", "tests"})
_CLAUDE: Final = (".claude/commands", ".claude/skills")
_SKILL: Final = "SKILL.md"
_HIDDEN: Final = "hidden (a name on its path starts with a dot)"


class _Place(Struct, frozen=True):
    """What a folder means for the files in it."""

    #: Why none of them is read, except a `SKILL.md`; empty if they are.
    reason: str = ""
    hidden: bool = False
    pattern: bool = False
    commands: bool = False


def detect_formats(files: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The format of every file to read, and for every other file the reason why it is skipped."""
    if TWIG in files:
        return {TWIG: "twig"}, {file: _beside_twig(file) for file in files if file != TWIG}
    places = _places(files)
    formats: dict[str, str] = {}
    skipped: dict[str, str] = {}
    keys: dict[str, str] = {}
    for file in sorted(files):
        folder, _, name = file.rpartition("/")
        found, reason = _judged(name, folder, places[folder])
        if found:
            key = key_of(found, file)
            # A skill at the top is called by what it says itself.
            problem = None if file == _SKILL else key_problem(key)
            if problem is not None:
                found, reason = "", f"{problem}; rename it"
            elif key in keys:
                found, reason = "", f"it would be called '{key}' like {keys[key]}; rename one of them"
            else:
                keys[key] = file
        if found:
            formats[file] = found
        else:
            skipped[file] = reason
    return formats, skipped


def _beside_twig(file: str) -> str:
    if file.startswith("prompts/") and file.endswith(".md") and file.count("/") == 1:
        return "the text of a prompt, if twig.toml lists it"
    return "twig.toml decides what is read here; templates may include this file"


def _places(files: Sequence[str]) -> dict[str, _Place]:
    """What every folder is: there are fewer of them than files."""
    folders = {file.rpartition("/")[0] for file in files}
    hidden = {folder for folder in folders if _is_hidden(folder)}
    shown = folders - hidden
    skills = {file[: -len(_SKILL) - 1] for file in files if file.endswith(f"/{_SKILL}")} & shown
    if _SKILL in files:
        skills.add("")
    patterns = {file.rpartition("/")[0] for file in files if file.endswith("/system.md")}
    repository = any(
        folder.partition("/")[0] in CONTAINERS or folder.startswith("data/patterns") for folder in shown
    )
    return {
        folder: _Place(reason=_HIDDEN, hidden=True)
        if folder in hidden
        else _place(folder, skills, pattern=folder in patterns, repository=repository)
        for folder in folders
    }


def _place(folder: str, skills: set[str], *, pattern: bool, repository: bool) -> _Place:
    parts = folder.split("/")
    commands = "commands" in parts
    reason = ""
    if "node_modules" in parts:
        reason = "part of an installed package"
    elif (skill := _skill_around(folder, skills)) is not None:
        reason = f"part of the skill {skill}" if skill else "part of the skill that this library is"
    elif repository and parts[0] in _BESIDE:
        reason = "documentation or tests beside the prompts"
    pattern = pattern and parts[-1] not in CONTAINERS and not commands and not reason
    return _Place(reason=reason, pattern=pattern, commands=commands)


def _is_hidden(folder: str) -> bool:
    if folder in _CLAUDE or folder.startswith((".claude/commands/", ".claude/skills/")):
        folder = folder.removeprefix(".claude/")
    return folder.startswith(".") or "/." in folder


def _skill_around(folder: str, skills: set[str]) -> str | None:
    """The folder of the skill that a folder belongs to."""
    if not skills:
        return None
    while folder:
        if folder in skills:
            return folder
        folder = folder.rpartition("/")[0]
    return "" if "" in skills else None


def _judged(name: str, folder: str, place: _Place) -> tuple[str, str]:
    """The format, or nothing and a reason."""
    if place.hidden or name.startswith("."):
        return "", _HIDDEN
    if name == _SKILL:
        return "skill", ""
    if place.reason:
        return "", place.reason
    if place.pattern:
        if name == "system.md":
            return "fabric", ""
        if name == "user.md":
            return "", "Fabric's user.md; what the user says is the argument 'input' here"
        return "", f"part of the Fabric pattern {folder}"
    stem, _, extension = name.rpartition(".")
    if not stem:
        return "", "not a prompt: files without an extension are not read"
    found = _EXTENSIONS.get(extension.lower())
    if (found is not None or extension.lower() in _PROSE) and _ABOUT.fullmatch(stem):
        return "", "about the collection, not a prompt of it"
    if found is None:
        return "", f"not a prompt: .{extension} files are not read"
    if found == "dotprompt" and name.startswith("_"):
        return "", "a partial, which other .prompt files include"
    if found == "markdown" and place.commands:
        return "claude-command", ""
    return found, ""
