"""Escape text for Jinja templates."""

from __future__ import annotations

import json
import re
from typing import Final

# Also a brace at the end: an expression may follow it.
_OPENING: Final = re.compile(r"\{(?=[{%#]|\Z)")


def escape(text: str) -> str:
    """Template source that renders as `text`, whatever precedes or follows it."""
    return _OPENING.sub('{{ "{" }}', text)


def string_literal(text: str) -> str:
    """A Jinja expression whose value is `text`."""
    return json.dumps(text, ensure_ascii=False)
