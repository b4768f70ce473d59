"""Text search in SQLite: the trigram index yields candidates, which are compared with the text itself."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

import apsw
from msgspec import Struct

from dittybag.domain.entities import ENTITY_TYPES, Entity, Kind
from dittybag.domain.resources import Resource
from dittybag.domain.text import fold
from dittybag.storage.sql.entity_rows import folding
from dittybag.storage.sql.sql_driver import Bindings, contains_pattern

#: The trigram index of each kind of entity.
INDEXES: Final[dict[Kind, str]] = {
    "prompt": "prompt_index",
    "resource": "resource_index",
    "task": "task_index",
}

#: The indexed fields. That of a resource also has its content.
_INDEXED: Final[dict[Kind, tuple[str, ...]]] = {
    "prompt": ("title", "content"),
    "resource": ("name", "title"),
    "task": ("title", "notes"),
}

#: The index of stems, for the ranked search.
WORD_INDEX: Final = "word_index"
WORD_COLUMNS: Final = ("name", "tags", "description", "content")

#: Inserts the row id and the columns of a row into each search index.
INSERTS: Final = {
    **{index: f"INSERT INTO {index} (rowid, text) VALUES (?, ?)" for index in INDEXES.values()},
    WORD_INDEX: f"INSERT INTO {WORD_INDEX} (rowid, {', '.join(WORD_COLUMNS)}) VALUES (?, ?, ?, ?, ?)",
}

#: All full-text indexes.
FULL_TEXT_INDEXES: Final = tuple(INSERTS)

#: The length of a trigram.
_TRIGRAM: Final = 3
#: More trigrams of a query hardly narrow the candidates.
_MAX_TRIGRAMS: Final = 24

#: In characters. Pending index updates are written when there are more.
_MAX_PENDING: Final = 16 * 1024 * 1024


def index_text(kind: Kind, entity: Entity, content: str | None) -> str:
    """Return the text that the index has of an entity. `content`: that of a resource, unless it is binary."""
    texts = [getattr(entity, name) for name in _INDEXED[kind]]
    if isinstance(entity, Resource):
        texts.append(content)
    return folding(kind)("\n".join(text or "" for text in texts))


class IndexEntry(Struct):
    """A pending update of a search index."""

    #: The values of the columns; None to delete the row.
    values: tuple[str, ...] | None
    #: Whether the index already contains the row.
    in_index: bool


class PendingIndex:
    """Index updates of a transaction, collected to be written together at its end.

    FTS5 flushes its pending data whenever a statement with triggers begins. Updates written between other
    statements, or by triggers, would be as slow as one transaction each.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._entries: dict[str, dict[int, IndexEntry]] = {index: {} for index in INSERTS}
        self._length = 0

    def add(self, index: str, row: int, values: tuple[str, ...] | None, *, in_index: bool) -> None:
        """Add an update of a row. `values`: None to delete the row."""
        entry = self._entries[index].setdefault(row, IndexEntry(values, in_index))
        entry.values = values
        self._length += 1 + sum(map(len, values or ()))
        if self._length > _MAX_PENDING:
            self.write()

    def discard(self) -> None:
        """Drop all updates: the transaction is over."""
        if self._length:
            for entries in self._entries.values():
                entries.clear()
            self._length = 0

    def write(self) -> None:
        """Write all updates: before a commit, and before a search in the same transaction."""
        if not self._length:
            return
        for index, entries in self._entries.items():
            for row, entry in entries.items():
                if entry.in_index:
                    self._connection.execute(f"DELETE FROM {index} WHERE rowid = ?", (row,))
                if entry.values is not None:
                    self._connection.execute(INSERTS[index], (row, *entry.values))
        self.discard()


def text_match(text: str) -> str | None:
    """Return the `MATCH` expression for rows that may contain a text; None if it is too short."""
    return words_match([fold(text)])


def words_match(words: Iterable[str]) -> str | None:
    """Return the `MATCH` expression for rows that may contain all folded words; None if all are too short."""
    trigrams = dict.fromkeys(
        word[at : at + _TRIGRAM] for word in words for at in range(len(word) - _TRIGRAM + 1)
    )
    return " AND ".join(map(_quoted, islice(trigrams, _MAX_TRIGRAMS))) or None


def _quoted(text: str) -> str:
    escaped = text.replace('"', '""')
    return f'"{escaped}"'


def candidates(kind: Kind, match: str | None, bindings: Bindings, *, hint: str = "") -> str:
    """SQL for whether a row may match. `hint`: a plus sign, to find rows in another way than by the index."""
    if match is None:
        return "true"
    index = INDEXES[kind]
    found = f"SELECT rowid FROM {index} WHERE {index} MATCH {bindings.add(match)}"
    return f"{hint}{ENTITY_TYPES[kind].key} IN ({found})"


class Contains:
    """SQL for whether texts contain a folded term."""

    def __init__(self, term: str, bindings: Bindings) -> None:
        self._term = bindings.add(term)
        self._pattern = bindings.add(contains_pattern(term))

    def in_column(self, name: str, source: str = "") -> str:
        """SQL for a column with a folded one. `source`: SQL for the text, if it is not in the column."""
        text = f"{source or name} LIKE {self._pattern} ESCAPE '\\'"
        return f"coalesce(instr(folded_{name}, {self._term}) > 0, {text}, 0)"
