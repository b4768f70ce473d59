"""A prompt that is handed out as a skill: its name, description and text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from dittybag.domain.prompts import Argument, Prompt
from dittybag.domain.skills import DESCRIPTION_LENGTH, NAME_LENGTH, is_skill_name
from dittybag.domain.text import one_line

_OTHERS: Final = r"[^a-z0-9]+"


def skill_name(name: str, id: str) -> str:
    """Return the name of the skill that a prompt becomes."""
    if is_skill_name(name):
        return name
    return re.sub(_OTHERS, "-", name.lower())[:NAME_LENGTH].strip("-") or f"prompt-{id[:8]}"


def skill_front_matter(prompt: Prompt) -> dict[str, str]:
    """Return the fields at the top of the `SKILL.md` of a prompt."""
    return {"name": skill_name(prompt.name, prompt.id), "description": _description(prompt)}


def skill_text(prompt: Prompt) -> bytes:
    """Return the `SKILL.md` of a prompt."""
    # Strings in JSON are valid in YAML. Characters that YAML does not allow are escaped.
    fields = (f"{name}: {_quoted(value)}\n" for name, value in skill_front_matter(prompt).items())
    return f"---\n{''.join(fields)}---\n\n{_instructions(prompt.arguments)}{prompt.content}".encode()


def _description(prompt: Prompt) -> str:
    """Return the description of a prompt in one line; without one, its title or its name."""
    texts = (" ".join((text or "").split()) for text in (prompt.description, prompt.title))
    lines = (one_line(text, DESCRIPTION_LENGTH) for text in texts)
    return next(filter(None, lines), prompt.name)


def _quoted(value: str) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in text)


def _instructions(arguments: Sequence[Argument]) -> str:
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
