"""Literals: text that comes out of a template exactly as it is written."""

from __future__ import annotations

import json
import re
from typing import Final

# A brace at the end counts too: an expression may follow it.
_OPENING: Final = re.compile(r"\{(?=[{%#]|\Z)")


def literal(text: str) -> str:
    """A piece of a template that renders as `text`, whatever stands next to it."""
    return _OPENING.sub('{{ "{" }}', text)


def quoted(text: str) -> str:
    """An expression whose value is `text`."""
    return json.dumps(text, ensure_ascii=False)
