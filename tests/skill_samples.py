"""A library of skills for tests: front matter of every type, nested folders, binary files and odd names."""

from __future__ import annotations

from typing import Any, Final

from tests.everything import media_samples

#: YAML, and the JSON values that clients must see.
FRONT_MATTER: Final = """\
name: pdf-forms
description: >-
  Fills in PDF forms. Use when a
  form must be completed.
license: Apache-2.0
compatibility: "Needs Python 3.11: or newer"
metadata:
  author: Zoë
  version: "1.0"
allowed-tools: Read Bash(python:*)
disable-model-invocation: true
priority: 7
ratio: 0.5
nothing: ~
since: 2026-09-13
answer: yes
tags: [forms, "null", 12, 0x1F, {deep: false}]
"""
FIELDS: Final[dict[str, Any]] = {
    "name": "pdf-forms",
    "description": "Fills in PDF forms. Use when a form must be completed.",
    "license": "Apache-2.0",
    "compatibility": "Needs Python 3.11: or newer",
    "metadata": {"author": "Zoë", "version": "1.0"},
    "allowed-tools": "Read Bash(python:*)",
    "disable-model-invocation": True,
    "priority": 7,
    "ratio": 0.5,
    "nothing": None,
    "since": "2026-09-13",
    "answer": "yes",
    "tags": ["forms", "null", 12, 31, {"deep": False}],
}


def skill_md(name: str, description: str = "Does something. Use when needed.", body: str = "Do it.") -> str:
    """Return a `SKILL.md`."""
    return f"---\nname: {name}\ndescription: {description}\n---\n\n{body}\n"


#: A skill with files of all kinds, by path in the skill.
FORMS: Final[dict[str, str | bytes]] = {
    "SKILL.md": f"---\n{FRONT_MATTER}---\n\n# Forms\n\nPick a template from `templates/`.\n",
    "LICENSE.txt": "Use it.\r\nFreely.\r\n",
    "templates/invoice.md": "# Invoice\n",
    "templates/regional/eu.md": "# EU\n",
    "templates/with spaces & 100%.md": "odd\n",
    "templates/größe-日本.md": "ü\n",
    "templates/a#b?c.md": "fragment\n",
    "assets/logo.png": media_samples.PNG,
    "assets/empty": b"",
    "assets/bom.txt": b"\xef\xbb\xbfmarked",
    "assets/zeros.bin": b"a\0b",
    "assets/latin.txt": b"caf\xe9",
    "assets/odd.txt": "lone \r return, \x01 control, \u2028 separator, \U0001f9f7",
    "scripts/fill.py": "print('filled')\n",
}

#: Files of a library with three skills, one of them inside another.
LIBRARY: Final[dict[str, str | bytes]] = {
    **{f"skills/pdf-forms/{path}": content for path, content in FORMS.items()},
    "skills/review/SKILL.md": skill_md("review"),
    "skills/review/deep/SKILL.md": skill_md("deep"),
    "skills/review/deep/steps.md": "1. Look\n",
    "README.md": "Not a part of any skill.\n",
    "notes.md": "A prompt, not a skill.\n",
}
