"""The rows of the index of stems in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from dittybag.domain.ranked_search import STORED_KINDS, StoredKind, columns_of
from dittybag.storage.sqlite.sqlite_text_search import WORD_INDEX


def row_id(kind: StoredKind, number: int) -> int:
    """Return the row id of an entity."""
    return 4 * number + STORED_KINDS.index(kind)


def entity_of(row: int) -> tuple[StoredKind, int]:
    """Return the kind and the number of the entity with a row id."""
    return STORED_KINDS[row % 4], row // 4


def column_values(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the values of the columns for the searched texts of an entity."""
    return tuple(" ".join(column) for column in columns_of(texts))


def register_totals(connection: apsw.Connection) -> None:
    """Register what `count_rows_and_words` uses, once on each connection."""
    connection.register_fts5_function("totals", _totals)


def count_rows_and_words(connection: apsw.Connection) -> tuple[int, int]:
    """Return the number of rows of the index and of their words, which `bm25` uses."""
    found: str | None = connection.execute(f"SELECT totals({WORD_INDEX}) FROM {WORD_INDEX} LIMIT 1").get
    rows, words = map(int, (found or "0 0").split())
    return rows, words


def _totals(index: apsw.FTS5ExtensionApi, *_: object) -> str:
    return f"{index.row_count} {index.column_total_size()}"
