"""Descriptions and titles for lists."""

from __future__ import annotations

import re
from typing import Final

from dittybag.domain.prompts import DESCRIPTION_LENGTH, TITLE_LENGTH
from dittybag.domain.text import one_line

#: Number of characters searched for a line that describes the text.
_SEARCH_LENGTH: Final = 8000
_ROLE: Final = re.compile(
    r"(?:system|user|assistant|model|developer)\s*:|--role\s+(?:system|user|assistant)", re.IGNORECASE
)
_WITHOUT_WORDS: Final = re.compile(r"(?:```|~~~|<!--|-->|!\[|\[!\[).*|[\W_]*|<[^>]*>|\[//\].*")
_MARKS: Final = re.compile(r"^(?:#{1,6}(?=\s)|>|[-*+](?=\s)|\d{1,3}[.)](?=\s))\s*")


def normalise_description(text: str | None) -> str | None:
    """A description as written, with its lines, of limited length; None if it is blank."""
    return text[:DESCRIPTION_LENGTH] if text and text.strip() else None


def normalise_title(text: str | None) -> str | None:
    """A title as one line of limited length; None if it is empty."""
    return _normalise(text, TITLE_LENGTH)


def first_line(text: str, *, headings: bool = True) -> str | None:
    """The first meaningful line of a text, to be used as its description.

    `headings`: whether a heading is preferred over the text below it.
    """
    fallback = None
    for line in text[:_SEARCH_LENGTH].splitlines():
        stripped = line.strip()
        if not stripped or _ROLE.fullmatch(stripped) or _WITHOUT_WORDS.fullmatch(stripped):
            continue
        found = _normalise(_MARKS.sub("", stripped).replace("**", "").strip("# "), TITLE_LENGTH)
        if not found:
            continue
        if headings or not stripped.startswith("#"):
            return found
        fallback = fallback or found
    return fallback


def _normalise(text: str | None, max_length: int) -> str | None:
    if not text:
        return None
    return " ".join(one_line(text, len(text)).split())[:max_length].strip() or None
