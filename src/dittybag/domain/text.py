"""Text as data: what may be stored, how it is compared, and what of it is shown in lists."""

from __future__ import annotations

import re
from typing import Final

SNIPPET_LENGTH: Final = 200
QUERY_LENGTH: Final = 1000
#: So much of a snippet comes before the match.
_LEAD: Final = 60

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def fold(text: str) -> str:
    """`text` as searches compare it: two texts that differ only in case are equal."""
    return text.casefold()


def line_problem(label: str, text: str) -> str | None:
    """What is wrong with a text that should be a single line, if anything."""
    if "\0" in text:
        return nul_problem(label)
    if _CONTROL.search(text):
        return f"{label} must not contain control characters"
    if text and not text.strip():
        return f"{label} must not be blank"
    return None


def body_problem(label: str, text: str) -> str | None:
    """What is wrong with a text of any number of lines, if anything."""
    return nul_problem(label) if "\0" in text else None


def nul_problem(label: str) -> str:
    return f"{label} must not contain NUL characters"


def query_problem(query: str) -> str | None:
    """What is wrong with a text to search for, if anything."""
    if len(query) > QUERY_LENGTH:
        return f"Query must be at most {QUERY_LENGTH} characters"
    return body_problem("Query", query)


def one_line(text: str, most: int = 200) -> str:
    """A foreign text made fit for a one-line field."""
    return _CONTROL.sub(" ", text)[:most].strip()


def snippet_start(text: str) -> str:
    """The first characters of a text that may hold more of them."""
    return text if len(text) <= SNIPPET_LENGTH else text[:SNIPPET_LENGTH] + "..."


def snippet_around(text: str, query: str) -> str:
    """What stands around the first match of `query`; the beginning, if it is not in there."""
    at = _find(text, fold(query)) if query else -1
    if at < 0:
        return snippet_start(text)
    start = max(0, min(at - _LEAD, len(text) - SNIPPET_LENGTH))
    end = start + SNIPPET_LENGTH
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"


def _find(text: str, needle: str) -> int:
    """Where in `text`, whose folded form may be longer, the folded `needle` begins."""
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
