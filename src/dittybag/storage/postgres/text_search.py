"""Search in PostgreSQL: a LIKE on folded text, which a trigram index serves where there is one."""

from __future__ import annotations

from dittybag.domain.text import fold
from dittybag.storage.postgres.rows import ascii_lower, escape_like


def folded_or_none(text: str | None) -> str | None:
    """The folded text, unless `lower` makes the same of it, which knows only the letters of ASCII."""
    if text is None or text.isascii():
        return None
    result = fold(text)
    return None if result == ascii_lower(text) else result


def pattern(query: str) -> str:
    """What folded texts with the query in them are LIKE."""
    return f"%{escape_like(fold(query))}%"


def contains(column: str, placeholder: str) -> str:
    """SQL for whether a text has the needle in it. The trigram indexes are on this very expression."""
    return f"coalesce(folded_{column}, lower({column})) LIKE {placeholder}"
