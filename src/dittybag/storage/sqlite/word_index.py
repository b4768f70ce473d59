"""The rows of the index of stems in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import apsw

from dittybag.domain.ranked_search import STORED_KINDS, StoredKind, columns_of
from dittybag.storage.sqlite.index_structure import read_varints
from dittybag.storage.sqlite.sqlite_text_search import WORD_INDEX

#: The record with the number of rows and of the words of each column, as varints. `bm25` uses the same.
_TOTALS: Final = f"SELECT block FROM {WORD_INDEX}_data WHERE id = 1"


def row_id(kind: StoredKind, number: int) -> int:
    """Return the row id of an entity."""
    return 4 * number + STORED_KINDS.index(kind)


def entity_of(row: int) -> tuple[StoredKind, int]:
    """Return the kind and the number of the entity with a row id."""
    return STORED_KINDS[row % 4], row // 4


def column_values(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the values of the columns for the searched texts of an entity."""
    return tuple(" ".join(column) for column in columns_of(texts))


def count_rows_and_words(connection: apsw.Connection) -> tuple[int, int]:
    """Return the number of rows of the index and of their words."""
    record: bytes | None = connection.execute(_TOTALS).get
    rows, *words = read_varints(record or b"") or [0]
    return rows, sum(words)
