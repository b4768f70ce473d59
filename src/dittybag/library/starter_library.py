"""The files of the library that `dittybag library new` creates, with one example prompt."""

from __future__ import annotations

from typing import Final

_MANIFEST: Final = """\
# The prompts of this library. Each prompt has a table here and a template in prompts/NAME.md.
# MCP clients list the prompt below as `{name}:explain`.

[prompts.explain]
description = "Explain a topic to a given audience"

# The arguments of the prompt. All values are text.
[[prompts.explain.arguments]]
name = "topic"
description = "What to explain"
required = true

[[prompts.explain.arguments]]
name = "reader"
description = "The audience, for example: a new colleague"
"""

_EXPLAIN: Final = """\
{# This comment is not part of the prompt. Names in double braces are replaced by arguments. -#}
Explain {{ topic }}{% if reader %} to {{ reader }}{% endif %}.

- Start with one sentence that says what it is and why it matters.
- Then give an example from everyday work.
- End with the most common mistake.
"""


def starter_files(name: str) -> dict[str, str]:
    """The files of a new library, by path."""
    return {"twig.toml": _MANIFEST.replace("{name}", name), "prompts/explain.md": _EXPLAIN}
