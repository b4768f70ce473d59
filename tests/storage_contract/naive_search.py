"""Naive comparisons that searches are checked against."""

from __future__ import annotations

import re
import unicodedata


def contains_words(query: str, *texts: str | None) -> bool:
    """Return whether every word of the query is in one of the texts, ignoring case and accents."""
    return all(
        any((without_accents(word) or word) in without_accents(text or "") for text in texts)
        for word in query.split()
    )


def without_accents(text: str) -> str:
    """Return a text in lower case without accents."""
    decomposed = unicodedata.normalize("NFD", text.casefold())
    return unicodedata.normalize("NFC", re.sub("[\u0300-\u036f]", "", decomposed))
