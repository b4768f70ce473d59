"""Escape text for Jinja templates."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Final

# Also a brace at the end: an expression may follow it.
_OPENING: Final = re.compile(r"\{(?=[{%#]|\Z)")


def escape(text: str) -> str:
    """Template source that renders as `text`, whatever precedes or follows it."""
    return _OPENING.sub('{{ "{" }}', text)


def string_literal(text: str) -> str:
    """A Jinja expression whose value is `text`."""
    return json.dumps(text, ensure_ascii=False)


def replace_placeholders(
    text: str, placeholders: Iterable[re.Match[str]], replacement: Callable[[re.Match[str]], str | None]
) -> str:
    """Template source that renders as `text` with its placeholders replaced; None keeps one as text."""
    pieces: list[str] = []
    at = 0
    for found in placeholders:
        source = replacement(found)
        if source is not None:
            pieces += (escape(text[at : found.start()]), source)
            at = found.end()
    return "".join((*pieces, escape(text[at:])))
