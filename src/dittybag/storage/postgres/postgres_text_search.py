"""Text search in PostgreSQL: a LIKE on folded text, with a trigram index if pg_trgm is available."""

from __future__ import annotations

import re
from typing import Final

from dittybag.domain.text import fold
from dittybag.storage.sql.sql_driver import contains_pattern

#: A text without such a sequence cannot use the trigram index.
_TRIGRAM: Final = re.compile(r"[^\W_]{3}")


def has_trigram(query: str) -> bool:
    """Whether a trigram index can find texts that contain the query."""
    return _TRIGRAM.search(query) is not None


def pattern(query: str) -> str:
    """Return the LIKE pattern for folded texts that contain the query."""
    return contains_pattern(fold(query))


def contains(column: str, placeholder: str) -> str:
    """SQL for whether a text contains the query. The trigram indexes are on the same expression."""
    return f"coalesce(folded_{column}, lower({column})) LIKE {placeholder}"
