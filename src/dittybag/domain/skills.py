"""Agent Skills: folders with a `SKILL.md`, whose front matter describes them, and further files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from dittybag.domain import resources
from dittybag.domain.display import format_size

SKILL_FILE: Final = "SKILL.md"

#: What every host must be able to load: https://modelcontextprotocol.io/seps/2640-skills-extension
MAX_FILES: Final = 512
MAX_TOTAL_BYTES: Final = 16 * 1024 * 1024
#: Maximum size of a file: a client reads it as a resource.
FILE_BYTES: Final = resources.CONTENT_BYTES

#: The rules of https://agentskills.io/specification
NAME_LENGTH: Final = 64
DESCRIPTION_LENGTH: Final = 1024
_COMPATIBILITY_LENGTH: Final = 500
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class SkillFile(Struct, frozen=True):
    """A file of a skill."""

    #: Relative to the skill, with "/" as separator.
    path: str
    #: SHA-256 of its content, in hexadecimal digits.
    sha256: str
    size: int
    mime_type: str
    #: When it was changed last, in microseconds.
    modified_at: int


class Skill(Struct, frozen=True, kw_only=True):
    """A skill with all its files."""

    #: Where it is found: the library, folders in it, and the name of the skill, separated by "/".
    path: str
    #: The fields at the top of its `SKILL.md`.
    front_matter: dict[str, Any]
    #: `SKILL.md` and the other files, by path.
    files: tuple[SkillFile, ...]

    @property
    def name(self) -> str:
        return str(self.front_matter["name"])

    @property
    def description(self) -> str:
        return str(self.front_matter["description"])

    @property
    def head(self) -> SkillFile:
        """Its `SKILL.md`."""
        return next(file for file in self.files if file.path == SKILL_FILE)


def is_skill_name(name: str) -> bool:
    """Return whether a skill can have this name."""
    return len(name) <= NAME_LENGTH and _NAME.fullmatch(name) is not None


def front_matter_problem(fields: Mapping[str, Any]) -> str | None:
    """Return why a skill with this front matter does not conform to the specification, or `None`."""
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not is_skill_name(name):
        return (
            f"`name` must have 1 to {NAME_LENGTH} characters of a-z and 0-9, with single hyphens between them"
        )
    if not isinstance(description, str) or not description.strip() or len(description) > DESCRIPTION_LENGTH:
        return f"`description` must have 1 to {DESCRIPTION_LENGTH:,} characters"
    for field in ("license", "compatibility", "allowed-tools"):
        if not isinstance(fields.get(field, ""), str):
            return f"`{field}` must be text"
    if not 1 <= len(fields.get("compatibility", "-")) <= _COMPATIBILITY_LENGTH:
        return f"`compatibility` must have 1 to {_COMPATIBILITY_LENGTH} characters"
    metadata = fields.get("metadata", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        return "`metadata` must be a mapping of text to text; put numbers and dates into quotes"
    return None


def size_problem(sizes: Iterable[int]) -> str | None:
    """Return why a skill with files of these sizes is too large for clients, or `None`."""
    known = list(sizes)
    if len(known) > MAX_FILES:
        return f"it has {len(known):,} files; the maximum is {MAX_FILES}"
    if (total := sum(known)) > MAX_TOTAL_BYTES:
        return f"its files have {format_size(total)}; the maximum is {format_size(MAX_TOTAL_BYTES)}"
    if max(known, default=0) > FILE_BYTES:
        return f"one of its files is larger than {format_size(FILE_BYTES)}"
    return None
