"""Text search in SQLite: the trigram index yields candidates, which are compared with the text itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final

import apsw
from msgspec import Struct

from dittybag.domain.text import fold
from dittybag.storage.sqlite.rows import escape_like

#: More trigrams of a query hardly narrow the candidates.
_MAX_TRIGRAMS: Final = 24


def folded_or_none(text: str | None, folding: Callable[[str], str] = fold) -> str | None:
    """Return the folded text; None if SQLite's `lower` gives the same."""
    if text is None or text.isascii():
        return None
    result = folding(text)
    # Like SQLite, `bytes.lower` changes only ASCII letters.
    return None if result == text.encode().lower().decode() else result


class IndexEntry(Struct, frozen=True):
    """A pending update of a search index."""

    #: The name of the index.
    name: str
    number: int
    #: None to delete the row.
    text: str | None
    #: Whether the index already contains the row.
    in_index: bool


class PendingIndex:
    """Index updates of a transaction, collected to be written together at its end.

    FTS5 flushes its pending data whenever a statement with triggers begins. Updates written between other
    statements, or by triggers, would be as slow as one transaction each.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._entries: list[IndexEntry] = []

    def add(self, entry: IndexEntry) -> None:
        self._entries.append(entry)

    def discard(self) -> None:
        """Drop all updates: the transaction is over."""
        self._entries.clear()

    def write(self) -> None:
        """Write all updates: before a commit, and before a search in the same transaction."""
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
    """A search query in the forms that SQL needs."""

    def __init__(self, query: str) -> None:
        self.folded = fold(query)
        self.pattern = f"%{escape_like(self.folded)}%"
        trigrams = dict.fromkeys(self.folded[at : at + 3] for at in range(len(self.folded) - 2))
        #: For `MATCH`; None if the query is too short for the index.
        self.match = _match(trigrams)

    def candidates(self, index: str, key: str) -> str:
        """SQL that restricts rows to those that may contain the term. Bind :match."""
        return _candidates(self.match, index, key)

    def bindings(self) -> dict[str, str | None]:
        return {"folded": self.folded, "pattern": self.pattern, "match": self.match}


class SearchWords:
    """The words of a query, all of which must occur, in the forms that SQL needs."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        #: For `MATCH`; None if all words are too short for the index.
        self.match = _match(dict.fromkeys(word[at : at + 3] for word in words for at in range(len(word) - 2)))

    def contained_in(self, *columns: str) -> str:
        """SQL for whether every word is in one of these columns, which have folded columns too."""
        conditions = (
            " OR ".join(
                f"coalesce(instr(folded_{column}, :word{number}) > 0, "
                f"{column} LIKE :pattern{number} ESCAPE '\\', 0)"
                for column in columns
            )
            for number in range(len(self.words))
        )
        return " AND ".join(f"({condition})" for condition in conditions) or "true"

    def candidates(self, index: str, key: str) -> str:
        """SQL that restricts rows to those that may contain the words. Bind :match."""
        return _candidates(self.match, index, key)

    def bindings(self) -> dict[str, str | None]:
        bindings: dict[str, str | None] = {"match": self.match}
        for number, word in enumerate(self.words):
            bindings |= {f"word{number}": word, f"pattern{number}": f"%{escape_like(word)}%"}
        return bindings


def _match(trigrams: Iterable[str]) -> str | None:
    return " AND ".join(map(_quoted, islice(trigrams, _MAX_TRIGRAMS))) or None


def _candidates(match: str | None, index: str, key: str) -> str:
    return f"AND {key} IN (SELECT rowid FROM {index} WHERE {index} MATCH :match)" if match else ""


def _quoted(text: str) -> str:
    escaped = text.replace('"', '""')
    return f'"{escaped}"'


def contains(column: str, folded_column: str) -> str:
    """SQL for whether a text contains the term. Bind :folded and :pattern."""
    return f"coalesce(instr({folded_column}, :folded) > 0, {column} LIKE :pattern ESCAPE '\\', 0)"
