"""The name, the description and the instructions of a prompt that is handed out as a skill."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from dittybag.domain.prompts import Argument
from dittybag.domain.skills import DESCRIPTION_LENGTH, NAME_LENGTH, is_skill_name
from dittybag.domain.text import one_line

_OTHERS: Final = r"[^a-z0-9]+"


def skill_name(name: str, id: str) -> str:
    """Return the name of the skill that a prompt becomes."""
    if is_skill_name(name):
        return name
    return re.sub(_OTHERS, "-", name.lower())[:NAME_LENGTH].strip("-") or f"prompt-{id[:8]}"


def skill_description(name: str, title: str | None, description: str | None) -> str:
    """Return the description of a prompt in one line; without one, its title or its name."""
    texts = (" ".join((text or "").split()) for text in (description, title))
    lines = (one_line(text, DESCRIPTION_LENGTH) for text in texts)
    return next(filter(None, lines), name)


def template_instructions(arguments: Sequence[Argument]) -> str:
    """Return what stands before a template where it has no arguments: how to replace its variables."""
    if not arguments:
        return ""
    lines = [
        f"- `{item.name}`{'' if item.required else ' (optional)'}"
        + (f": {one_line(item.description, DESCRIPTION_LENGTH)}" if item.description else "")
        for item in arguments
    ]
    example = f"`{{{{ {arguments[0].name} }}}}`"
    return "\n".join((f"This text is a template. Replace its variables, such as {example}:\n", *lines, "\n"))
