"""The ranked search in SQLite, with the scores of FTS5.

The score of a row is a sum over the terms of the query, so each term is a query of its own: FTS5 gives the
part that depends on the row, and the weight of the term is ours, because it also counts library prompts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.ranked_search import (
    COLUMN_WEIGHTS,
    MAX_SCORED,
    SCORE_DIGITS,
    STORED_KINDS,
    Frequencies,
    SearchTerm,
    StoredKind,
    StoredMatch,
    StoredSearch,
    WeightedTerm,
    parse_query,
    rarest_terms,
)
from dittybag.domain.text import fold, fold_accents
from dittybag.storage.sql.ranked_table import owner_condition, phrase_conditions
from dittybag.storage.sql.sql_driver import Bindings
from dittybag.storage.sqlite.sqlite_driver import SqliteDriver
from dittybag.storage.sqlite.sqlite_text_search import INDEXES, words_match
from dittybag.storage.sqlite.word_index import count_rows_and_words, entity_of, register_totals, row_id

if TYPE_CHECKING:
    from dittybag.storage.sqlite.sqlite_queries import SqliteQueries

#: A frequency is counted again when the number of rows has changed by one part in this many.
_PRECISION: Final = 20
#: At most this many frequencies are kept.
_MAX_KNOWN: Final = 1000
#: At most this many rows with the words of a quoted text are compared with it.
_MAX_CANDIDATES: Final = 20_000
#: At most this many rows with all quoted texts are ranked.
_MAX_QUOTED: Final = 1000
#: `bm25` gives this weight to a term that occurs in more than half of all rows.
_MIN_WEIGHT: Final = 1e-6

_WEIGHTS: Final = ", ".join(map(str, COLUMN_WEIGHTS))


class SqliteRankedSearch:
    """See `dittybag.storage.sql.native_queries.RankedQueries`."""

    def __init__(self, driver: SqliteDriver, native: SqliteQueries) -> None:
        self._driver = driver
        self._native = native
        register_totals(driver.connection)
        #: The frequencies of frequent terms, each with the number of rows when they were counted.
        self._known: dict[SearchTerm, tuple[int, int]] = {}

    async def frequencies(self, terms: Sequence[SearchTerm]) -> Frequencies:
        self._native.pending.write()
        rows, words = count_rows_and_words(self._driver.connection)
        return Frequencies(rows, words, {term: await self._frequency(term, rows) for term in terms})

    async def _frequency(self, term: SearchTerm, rows: int) -> int:
        """Count the rows with a term. The counts of frequent terms, which take long, are used again."""
        known, at = self._known.get(term, (0, 0))
        if known and abs(rows - at) * _PRECISION <= at:
            return known
        count = await self._count(term)
        if count > MAX_SCORED:
            if len(self._known) == _MAX_KNOWN:
                self._known.clear()
            self._known[term] = count, rows
        return count

    async def _count(self, term: SearchTerm) -> int:
        """Count the rows with a term."""
        sql = "SELECT doc FROM word_frequencies WHERE term = $1"
        if term.is_prefix:
            sql = "SELECT count(*) FROM word_index WHERE word_index MATCH $1"
            return int(await self._driver.value(sql, _match(term)))
        return int(await self._driver.value(sql, term.text) or 0)

    async def find(self, search: StoredSearch) -> list[StoredMatch]:
        self._native.pending.write()
        if search.phrases:
            return await self._find_quoted(search)
        bindings = Bindings(search.project, search.user)
        return await self._best(search, self._is_own(search, "scored.id", bindings), bindings)

    async def _best(self, search: StoredSearch, condition: str, bindings: Bindings) -> list[StoredMatch]:
        """Return the best rows for which a condition is true."""
        sql = self._scores_sql(search, bindings)
        if sql is None:
            return []
        # The condition is evaluated for the best rows only, until there are enough of them.
        rows = await self._driver.rows(
            f"""WITH parts AS MATERIALIZED ({sql}), scored AS MATERIALIZED (
                    SELECT id, round(sum(score), {SCORE_DIGITS}) AS score FROM parts GROUP BY id
                    ORDER BY 2 DESC, 1 DESC
                )
                SELECT id, score FROM scored WHERE {condition} LIMIT {bindings.add(search.limit)}""",
            *bindings.values,
        )
        return [StoredMatch(*entity_of(row), score) for row, score in rows]

    async def _find_quoted(self, search: StoredSearch) -> list[StoredMatch]:
        found = [
            (kind, number) for kind in search.kinds for number in await self._quoted_numbers(search, kind)
        ]
        bindings = Bindings(search.project, search.user)
        rows = bindings.add(self._driver.list_value([row_id(*entity) for entity in found]))
        matches = await self._best(search, self._driver.any_of("id", rows), bindings)
        # A quoted text may be a part of a word, of which no term occurs.
        scored = {(match.kind, match.number) for match in matches}
        matches += [StoredMatch(*entity, 0.0) for entity in found if entity not in scored]
        return matches[: search.limit]

    async def _quoted_numbers(self, search: StoredSearch, kind: StoredKind) -> list[int]:
        """Return the numbers of the newest entities of a kind with all quoted texts."""
        longest = max(search.phrases, key=len)
        folded = fold_accents(longest) if kind == "task" else fold(longest)
        trigrams = words_match([folded])
        if trigrams is None:
            return await self._verified(search, kind)
        # The trigram index has titles and contents, the index of stems also names and descriptions.
        index = INDEXES[kind]
        numbers = f"SELECT rowid AS candidate FROM {index} WHERE {index} MATCH $2"
        found = await self._verified(search, kind, numbers, trigrams)
        stems = _quoted_match(longest)
        if stems and len(found) < _MAX_QUOTED:
            rows = "SELECT rowid FROM word_index WHERE word_index MATCH $2 ORDER BY rowid DESC"
            numbers = f"""SELECT rowid / 4 AS candidate FROM ({rows} LIMIT {_MAX_CANDIDATES})
                          WHERE rowid % 4 = {STORED_KINDS.index(kind)}"""
            found += await self._verified(search, kind, numbers, stems)
        return sorted(set(found), reverse=True)[:_MAX_QUOTED]

    async def _verified(
        self, search: StoredSearch, kind: StoredKind, candidates: str = "", match: str = ""
    ) -> list[int]:
        """Return the numbers of rows with all quoted texts: the newest of the candidates, or of all rows."""
        described = ENTITY_TYPES[kind]
        bindings = Bindings(search.user if kind == "task" else search.project, match)
        conditions = [
            f"({' OR '.join(phrase_conditions(self._native, kind, phrase, bindings))})"
            for phrase in search.phrases
        ]
        key, table = described.key, described.table
        owned = owner_condition(self._driver, search, kind, bindings, "$1", prefix="+")
        wanted = f"{owned} AND {' AND '.join(conditions)}"
        sql = f"SELECT {key} FROM {table} WHERE {wanted} AND $2 = '' ORDER BY {key} DESC LIMIT {_MAX_QUOTED}"
        if candidates:
            # The rows are read in the order of the index, until there are enough.
            sql = f"""SELECT {key} FROM ({candidates} ORDER BY rowid DESC) CROSS JOIN {table}
                      WHERE {key} = candidate AND {wanted} LIMIT {_MAX_QUOTED}"""
        return [row[0] for row in await self._driver.rows(sql, *bindings.values)]

    def _is_own(self, search: StoredSearch, row: str, bindings: Bindings) -> str:
        """SQL for whether a row is of the kinds of a search, and of the project $1 or the user $2."""
        cases = []
        for kind in search.kinds:
            described = ENTITY_TYPES[kind]
            owner = "$2" if kind == "task" else "$1"
            owned = owner_condition(self._driver, search, kind, bindings, owner, prefix="one.")
            exists = f"""EXISTS (SELECT 1 FROM {described.table} AS one
                         WHERE one.{described.key} = {row} / 4 AND {owned})"""
            cases.append(f"WHEN {STORED_KINDS.index(kind)} THEN {exists}")
        # SQLite must know the type of a parameter that no case uses.
        return f"CASE {row} % 4 {' '.join(cases)} ELSE $1 IS NULL AND $2 IS NULL END"

    def _scores_sql(self, search: StoredSearch, bindings: Bindings) -> str | None:
        """SQL for the ids of rows and the score of a term in each; None if no term occurs."""
        present = [term for term in search.terms if term.frequency]
        scored = rarest_terms(present)
        if not present:
            return None
        if not scored:
            return self._frequent_sql(search, [term.term for term in present], bindings)
        parts = [_bm25_sql(term, search.frequencies.entities, bindings) for term in scored]
        among = " OR ".join(_match(term.term) for term in scored)
        for term in present[len(scored) :]:
            match = bindings.add(f"({among}) AND {_match(term.term)}")
            scored_row = f"SELECT rowid AS id, {bindings.add(term.weight)} FROM word_index"
            parts.append(f"{scored_row} WHERE word_index MATCH {match}")
        return " UNION ALL ".join(parts)

    def _frequent_sql(self, search: StoredSearch, terms: Sequence[SearchTerm], bindings: Bindings) -> str:
        """SQL for the newest rows with all terms in the name, with all terms, and with the rarest term."""
        every = " AND ".join(map(_match, terms))
        own = self._is_own(search, "word_index.rowid", bindings)
        return " UNION ALL ".join(
            f"""SELECT * FROM (SELECT rowid AS id, 1.0 AS score FROM word_index
                WHERE word_index MATCH {bindings.add(match)} AND {own}
                ORDER BY rowid DESC LIMIT {bindings.add(search.limit)})"""
            for match in (f"name : ({every})", every, _match(terms[0]))
        )


def _bm25_sql(term: WeightedTerm, rows: int, bindings: Bindings) -> str:
    """SQL for the score of a term in each row that has it."""
    # FTS5 multiplies by its own weight of the term.
    native = max(math.log((rows - term.frequency + 0.5) / (term.frequency + 0.5)), _MIN_WEIGHT)
    factor = bindings.add(-term.weight / native)
    return f"""SELECT rowid AS id, bm25(word_index, {_WEIGHTS}) * {factor} AS score FROM word_index
               WHERE word_index MATCH {bindings.add(_match(term.term))}"""


def _quoted_match(text: str) -> str:
    """Return the `MATCH` expression for rows that may contain a quoted text, which may end within a word."""
    *terms, beginning = [*map(_match, parse_query(text, incomplete=True).terms)] or [""]
    if not terms:
        return beginning
    return " AND ".join([*terms[:-1], f"({terms[-1]} OR {beginning})"])


def _match(term: SearchTerm) -> str:
    """Return the `MATCH` expression for rows with a term."""
    # A stem has only letters and digits.
    return f'"{term.text}"{" *" if term.is_prefix else ""}'
