"""The library that `dittybag library new` makes: one prompt that shows what prompts can do."""

from __future__ import annotations

from typing import Final

_MANIFEST: Final = """\
# The prompts of this library. Each has a table here and its text in prompts/NAME.md.
# MCP clients show the one below as `{name}:explain`.

[prompts.explain]
description = "Explain a topic to a chosen reader"

# What a client asks for before it hands the prompt out; all values are text.
[[prompts.explain.arguments]]
name = "topic"
description = "What to explain"
required = true

[[prompts.explain.arguments]]
name = "reader"
description = "Who it is for, as in: a new colleague"
"""

_EXPLAIN: Final = """\
{# A comment: it is not part of the prompt. Arguments are filled in where their names are in braces. -#}
Explain {{ topic }}{% if reader %} to {{ reader }}{% endif %}.

- Begin with one sentence that says what it is and why it matters.
- Then give an example from everyday work.
- End with the mistake that people make most often.
"""


def files(name: str) -> dict[str, str]:
    """The files of a new library, by path."""
    return {"twig.toml": _MANIFEST.replace("{name}", name), "prompts/explain.md": _EXPLAIN}
