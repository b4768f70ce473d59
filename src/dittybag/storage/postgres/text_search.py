"""Text search in PostgreSQL: a LIKE on folded text, with a trigram index if pg_trgm is available."""

from __future__ import annotations

from dittybag.domain.text import fold
from dittybag.storage.postgres.rows import ascii_lower, escape_like


def folded_or_none(text: str | None) -> str | None:
    """Return the folded text; None if `lower`, which changes only ASCII letters, gives the same."""
    if text is None or text.isascii():
        return None
    result = fold(text)
    return None if result == ascii_lower(text) else result


def pattern(query: str) -> str:
    """Return the LIKE pattern for folded texts that contain the query."""
    return f"%{escape_like(fold(query))}%"


def contains(column: str, placeholder: str) -> str:
    """SQL for whether a text contains the query. The trigram indexes are on the same expression."""
    return f"coalesce(folded_{column}, lower({column})) LIKE {placeholder}"
