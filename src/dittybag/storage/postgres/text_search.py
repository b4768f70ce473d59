"""Text search in PostgreSQL: a LIKE on folded text, with a trigram index if pg_trgm is available."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dittybag.domain.text import fold
from dittybag.storage.postgres.rows import ascii_lower, escape_like


def folded_or_none(text: str | None, folding: Callable[[str], str] = fold) -> str | None:
    """Return the folded text; None if `lower`, which changes only ASCII letters, gives the same."""
    if text is None or text.isascii():
        return None
    result = folding(text)
    return None if result == ascii_lower(text) else result


def pattern(query: str) -> str:
    """Return the LIKE pattern for folded texts that contain the query."""
    return f"%{escape_like(fold(query))}%"


def contains(column: str, placeholder: str) -> str:
    """SQL for whether a text contains the query. The trigram indexes are on the same expression."""
    return f"coalesce(folded_{column}, lower({column})) LIKE {placeholder}"


def contain_words(words: Iterable[str], columns: Iterable[str], add: Callable[[str], str]) -> str:
    """SQL for whether every folded word is in one of the columns. `add` binds a value."""
    names = tuple(columns)
    placeholders = (add(f"%{escape_like(word)}%") for word in words)
    conditions = (" OR ".join(contains(name, value) for name in names) for value in placeholders)
    return " AND ".join(f"({condition})" for condition in conditions) or "true"
