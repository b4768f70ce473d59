"""Rules for stored text, case folding and snippets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

SNIPPET_LENGTH: Final = 200
QUERY_LENGTH: Final = 1000
#: Number of characters of a snippet before the match.
_LEAD: Final = 60

#: Words are compared up to this length, and are similar from this share of equal characters on.
_COMPARED_LENGTH: Final = 100
_SIMILARITY: Final = 0.6

#: Combining diacritical marks.
_ACCENTS: Final = "[\u0300-\u036f]+"
_CONTROL: Final = r"[\x00-\x1f\x7f-\x9f\u2028\u2029]"


def composed(name: str) -> str:
    """Return the name of a file with each letter and its accent as one character, where Unicode has it.

    Some file systems of macOS store the two apart.
    """
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def fold(text: str) -> str:
    """Fold `text` for comparison, so that texts that differ only in case are equal."""
    return text.casefold()


def fold_accents(text: str) -> str:
    """Fold `text` for comparison, so that texts that differ only in case or accents are equal."""
    if text.isascii():
        return text.lower()
    bare = re.sub(_ACCENTS, "", unicodedata.normalize("NFD", text.casefold()))
    return unicodedata.normalize("NFC", bare)


def search_words(query: str) -> list[str]:
    """Return the folded words of a query, without those that another word contains."""
    # A word of accents alone is kept as it is; no folded text contains it.
    words = dict.fromkeys(fold_accents(word) or word for word in query.split())
    return [word for word in words if not any(word in other for other in words if other != word)]


def line_problem(label: str, text: str) -> str | None:
    """Return the problem with a text that must be a single line, or `None`."""
    if "\0" in text:
        return nul_problem(label)
    if re.search(_CONTROL, text):
        return f"{label} must not contain control characters"
    if text and not text.strip():
        return f"{label} must not be blank"
    return None


def body_problem(label: str, text: str) -> str | None:
    """Return the problem with a text of any number of lines, or `None`."""
    return nul_problem(label) if "\0" in text else None


def nul_problem(label: str) -> str:
    return f"{label} must not contain NUL characters"


def query_problem(query: str) -> str | None:
    """Return the problem with a search query, or `None`."""
    if len(query) > QUERY_LENGTH:
        return f"Query must be at most {QUERY_LENGTH} characters"
    return body_problem("Query", query)


def one_line(text: str, max_length: int = 200) -> str:
    """Make any text a single line: replace control characters and truncate it."""
    return re.sub(_CONTROL, " ", text)[:max_length].strip()


def near_matches(word: str, candidates: Iterable[str], limit: int) -> list[str]:
    """Return the candidates that are spelled most like `word`, ignoring case, best first."""
    # Imported here because it is slow to import and only errors need it.
    from difflib import get_close_matches

    by_fold = {fold(candidate): candidate for candidate in candidates}
    # The comparison takes quadratic time, and no long word is a misspelt name.
    close = get_close_matches(fold(word[:_COMPARED_LENGTH]), by_fold, limit, _SIMILARITY)
    return [by_fold[item] for item in close]


def snippet_around(text: str, query: str) -> str:
    """Return the text around the first match of `query`, or the start of the text without a match."""
    at = _find(text, fold(query)) if query else -1
    if at < 0:
        return text if len(text) <= SNIPPET_LENGTH else text[:SNIPPET_LENGTH] + "..."
    start = max(0, min(at - _LEAD, len(text) - SNIPPET_LENGTH))
    end = start + SNIPPET_LENGTH
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"


def _find(text: str, needle: str) -> int:
    """Return the index in `text` of the folded `needle`, or -1. Folding can make a text longer."""
    whole = fold(text)
    at = whole.find(needle)
    if at < 0 or len(whole) == len(text):
        return at
    length = 0
    for index, character in enumerate(text):
        length += len(fold(character))
        if length > at:
            return index
    return -1
