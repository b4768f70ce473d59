"""Wording: descriptions and titles, made fit for the one line that lists give them."""

from __future__ import annotations

import re
from typing import Final

from dittybag.domain.prompts import DESCRIPTION_LENGTH, TITLE_LENGTH
from dittybag.domain.text import one_line

#: As much of a text as is searched for a line that describes it.
_LOOKED_AT: Final = 8000
_ROLE: Final = re.compile(r"(?:system|user|assistant|model|developer)\s*:", re.IGNORECASE)
_NO_WORDS: Final = re.compile(r"(?:```|~~~|<!--|-->|!\[|\[!\[).*|[\W_]*|<[^>]*>|\[//\].*")
_MARKS: Final = re.compile(r"^(?:#{1,6}(?=\s)|>|[-*+](?=\s)|\d{1,3}[.)](?=\s))\s*")


def described(text: str | None) -> str | None:
    """A description as lists show it."""
    return _fit(text, DESCRIPTION_LENGTH)


def titled(text: str | None) -> str | None:
    """A title as lists show it."""
    return _fit(text, TITLE_LENGTH)


def first_line(text: str, *, headings: bool = True) -> str | None:
    """The first line that says something, for texts that nobody has described.

    Headings count unless they are the same in every text of a format.
    """
    fallback = None
    for line in text[:_LOOKED_AT].splitlines():
        stripped = line.strip()
        if not stripped or _ROLE.fullmatch(stripped) or _NO_WORDS.fullmatch(stripped):
            continue
        found = _fit(_MARKS.sub("", stripped).replace("**", "").strip("# "), TITLE_LENGTH)
        if not found:
            continue
        if headings or not stripped.startswith("#"):
            return found
        fallback = fallback or found
    return fallback


def _fit(text: str | None, most: int) -> str | None:
    if not text:
        return None
    return " ".join(one_line(text, len(text)).split())[:most].strip() or None
