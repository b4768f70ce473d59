"""Search in SQLite: candidates from the trigram index, each compared with the text itself."""

from __future__ import annotations

from typing import Final

import apsw
from msgspec import Struct

from dittybag.domain.text import fold
from dittybag.storage.sqlite.rows import escape_like

#: So many trigrams of a query narrow it down enough.
_MAX_TRIGRAMS: Final = 24


def folded_or_none(text: str | None) -> str | None:
    """The folded text, unless SQLite's `lower` makes the same of it."""
    if text is None or text.isascii():
        return None
    result = fold(text)
    # Bytes know only ASCII letters, like SQLite.
    return None if result == text.encode().lower().decode() else result


class IndexEntry(Struct, frozen=True):
    """What the index is to know of a document from now on."""

    #: The index.
    name: str
    number: int
    #: Nothing, if it is gone.
    text: str | None
    #: Whether it is in the index already.
    in_index: bool


class PendingIndex:
    """What the indexes have yet to learn of a transaction, to be written in one go at its end.

    FTS5 writes out what it has gathered whenever a statement with triggers begins: entries written between
    other statements, or by triggers, would cost as much as if each had a transaction of its own.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._entries: list[IndexEntry] = []

    def add(self, entry: IndexEntry) -> None:
        self._entries.append(entry)

    def forget(self) -> None:
        """The transaction is rolled back."""
        self._entries.clear()

    def write(self) -> None:
        """Bring the indexes up to date: before a commit, and before a search in the same transaction."""
        if not self._entries:
            return
        for entry in sorted(self._entries, key=lambda entry: entry.name):
            if entry.in_index:
                self._connection.execute(f"DELETE FROM {entry.name} WHERE rowid = ?", (entry.number,))
            if entry.text is not None:
                sql = f"INSERT INTO {entry.name} (rowid, text) VALUES (?, ?)"
                self._connection.execute(sql, (entry.number, entry.text))
        self._entries.clear()


class SearchTerm:
    """A query, in the forms that SQL needs."""

    def __init__(self, query: str) -> None:
        self.folded = fold(query)
        self.pattern = f"%{escape_like(self.folded)}%"
        trigrams = dict.fromkeys(self.folded[at : at + 3] for at in range(len(self.folded) - 2))
        #: For `MATCH`; nothing if the query is too short for the index.
        self.match = " AND ".join(_quoted(trigram) for trigram in list(trigrams)[:_MAX_TRIGRAMS]) or None

    def candidates(self, index: str, key: str) -> str:
        """SQL that leaves only the documents which may have the needle in them; it wants :match."""
        return f"AND {key} IN (SELECT rowid FROM {index} WHERE {index} MATCH :match)" if self.match else ""

    def bindings(self) -> dict[str, str | None]:
        return {"folded": self.folded, "pattern": self.pattern, "match": self.match}


def _quoted(text: str) -> str:
    escaped = text.replace('"', '""')
    return f'"{escaped}"'


def contains(column: str, folded_column: str) -> str:
    """SQL for whether a text has the needle in it; it wants :folded and :pattern."""
    return f"coalesce(instr({folded_column}, :folded) > 0, {column} LIKE :pattern ESCAPE '\\', 0)"
