"""Text search in PostgreSQL: a LIKE on folded text, with a trigram index if pg_trgm is available."""

from __future__ import annotations

from dittybag.domain.text import fold
from dittybag.storage.sql.sql_driver import contains_pattern


def pattern(query: str) -> str:
    """Return the LIKE pattern for folded texts that contain the query."""
    return contains_pattern(fold(query))


def contains(column: str, placeholder: str) -> str:
    """SQL for whether a text contains the query. The trigram indexes are on the same expression."""
    return f"coalesce(folded_{column}, lower({column})) LIKE {placeholder}"
