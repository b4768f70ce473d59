"""The ranked search in PostgreSQL: an index yields candidates, whose scores are computed here.

The ranks of PostgreSQL know nothing of the frequency of words and the length of texts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.ranked_search import (
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
    term_score,
)
from dittybag.storage.postgres.postgres_driver import PostgresDriver, is_storable
from dittybag.storage.postgres.row_security import RANKING, RowSecurity
from dittybag.storage.postgres.word_vectors import read_counts
from dittybag.storage.sql.ranked_table import owner_condition, phrase_conditions
from dittybag.storage.sql.sql_driver import Bindings, Row

if TYPE_CHECKING:
    from dittybag.storage.postgres.postgres_queries import PostgresQueries

#: At most this many rows of a kind with all quoted texts are scored.
_MAX_QUOTED: Final = 1000
#: Rows beyond this number are estimated.
_MAX_COUNTED: Final = 20_000
#: How long an estimate is used.
_ESTIMATE_SECONDS: Final = 60.0
#: At most this many words with the same beginning are searched.
_MAX_EXPANSIONS: Final = 50

#: In a store with fewer rows, the rows with a term are counted, whatever their number is.
_MIN_ROWS: Final = 2 * MAX_SCORED
#: An estimate of at least this many rows is not checked by counting. It comes from 30,000 rows, of which
#: enough have the term. Counting reads a page for each row.
_MIN_ESTIMATE: Final = 1000

#: Counts the rows of each kind with each of the terms in a list. The plan is the same for all terms: by the
#: index.
_COUNTS: Final = " UNION ALL ".join(
    f"""SELECT '{kind}', number, (
            SELECT count(*) FROM (
                SELECT FROM {ENTITY_TYPES[kind].table} WHERE words @@ term::tsquery LIMIT {MAX_SCORED}
            ) AS found
        ) FROM unnest(${parameter}::text[]) WITH ORDINALITY AS terms (term, number)"""
    for parameter, kind in enumerate(STORED_KINDS, 1)
)

_KindTerm: TypeAlias = tuple[StoredKind, SearchTerm]
#: A term, and the stems that it matches.
_ExpandedTerm: TypeAlias = tuple[WeightedTerm, list[str]]


class PostgresRankedSearch:
    """See `dittybag.storage.sql.native_queries.RankedQueries`.

    All statements see all rows and name the project or user themselves, because a policy would keep
    PostgreSQL from using the index.
    """

    def __init__(self, driver: PostgresDriver, native: PostgresQueries, row_security: RowSecurity) -> None:
        self._driver = driver
        self._native = native
        self._row_security = row_security
        #: The number of rows and words of a large store, and until when it is used.
        self._estimate: tuple[int, int, float] | None = None

    async def frequencies(self, terms: Sequence[SearchTerm]) -> Frequencies:
        async with self._row_security.as_indexed_operator(RANKING):
            rows, words = await self._totals()
            known = [term for term in terms if is_storable(term.text)]
            # Of a small store, no term is frequent enough to be estimated.
            estimates = await self._estimates(known) if rows >= _MIN_ROWS else {}
            counts = await self._counts(known, estimates)
        return Frequencies(rows, words, {term: counts.get(term, 0) for term in terms})

    async def _totals(self) -> tuple[int, int]:
        """Return the number of rows and words."""
        if self._estimate is not None and time.monotonic() < self._estimate[2]:
            return self._estimate[:2]
        total_rows = total_words = 0
        is_estimated = False
        for kind in STORED_KINDS:
            table = ENTITY_TYPES[kind].table
            rows, words, estimate = await self._driver.row(
                f"""SELECT count(*), coalesce(sum(word_count), 0)::bigint,
                           (SELECT reltuples::bigint FROM pg_class WHERE oid = '{table}'::regclass)
                    FROM (SELECT word_count FROM {table} LIMIT {_MAX_COUNTED}) AS counted"""
            ) or (0, 0, 0)
            if rows == _MAX_COUNTED and estimate > rows:
                is_estimated = True
                rows, words = estimate, words * estimate // rows
            total_rows, total_words = total_rows + rows, total_words + words
        if is_estimated:
            self._estimate = total_rows, total_words, time.monotonic() + _ESTIMATE_SECONDS
        return total_rows, total_words

    async def _estimates(self, terms: Sequence[SearchTerm]) -> dict[_KindTerm, int]:
        """Return how many rows of each kind PostgreSQL expects to have each term: frequent ones are known."""
        if not terms:
            return {}
        wanted = {
            f"{kind}_{number}": (kind, term) for kind in STORED_KINDS for number, term in enumerate(terms, 1)
        }
        selects = (
            f"SELECT 1 FROM {ENTITY_TYPES[kind].table} AS {alias}"
            f" WHERE words @@ ${alias.partition('_')[2]}::tsquery"
            for alias, (kind, _) in wanted.items()
        )
        sql = f"EXPLAIN (FORMAT JSON) {' UNION ALL '.join(selects)}"
        plan = msgspec.json.decode(await self._driver.value(sql, *map(_query, terms)))[0]["Plan"]
        return {
            wanted[node["Alias"]]: int(node["Plan Rows"])
            for node in plan["Plans"]
            if node.get("Alias") in wanted
        }

    async def _counts(
        self, terms: Sequence[SearchTerm], estimates: Mapping[_KindTerm, int]
    ) -> dict[SearchTerm, int]:
        """Count the rows with each term; their number is estimated if there are many."""
        counts = dict.fromkeys(terms, 0)
        counted: dict[StoredKind, list[SearchTerm]] = {kind: [] for kind in STORED_KINDS}
        for kind, term in product(STORED_KINDS, terms):
            estimate = estimates.get((kind, term), 0)
            if estimate < _MIN_ESTIMATE:
                counted[kind].append(term)
            else:
                counts[term] += estimate
        if any(counted.values()):
            queries = ([_query(term) for term in counted[kind]] for kind in STORED_KINDS)
            for kind, number, count in await self._driver.rows(_COUNTS, *queries):
                term = counted[kind][number - 1]
                is_more = count == MAX_SCORED
                counts[term] += max(count, estimates.get((kind, term), 0)) if is_more else count
        return counts

    async def find(self, search: StoredSearch) -> list[StoredMatch]:
        if not all(map(is_storable, search.phrases)):
            return []
        async with self._row_security.as_indexed_operator(RANKING):
            terms = [(term, await self._stems(term.term)) for term in search.terms if term.frequency]
            average_length = search.frequencies.average_length
            matches = [
                StoredMatch(kind, row[0], _score(row, terms, average_length))
                for kind in search.kinds
                for row in await self._candidates(search, kind, terms)
            ]
        matches.sort(key=lambda match: (-match.score, -match.number))
        return await self._visible(matches[: search.limit])

    async def _visible(self, matches: list[StoredMatch]) -> list[StoredMatch]:
        """Return the matches without the tasks that the policies hide from the viewer.

        The conditions of the search include the policies for the project.
        """
        numbers = [match.number for match in matches if match.kind == "task"]
        if not numbers or self._row_security.is_operator:
            return matches
        rows = await self._driver.rows("SELECT id FROM tasks WHERE id = ANY($1)", numbers)
        visible = {row[0] for row in rows}
        return [match for match in matches if match.kind != "task" or match.number in visible]

    async def _stems(self, term: SearchTerm) -> list[str]:
        """Return the stems that a term matches."""
        if not term.is_prefix:
            return [term.text]
        vectors = " UNION ALL ".join(
            f"(SELECT words FROM {table} WHERE words @@ $1::tsquery LIMIT {_MAX_EXPANSIONS})"
            for table in (ENTITY_TYPES[kind].table for kind in STORED_KINDS)
        )
        rows = await self._driver.rows(
            f"""SELECT DISTINCT lexeme FROM ({vectors}) AS found, unnest(words)
                WHERE starts_with(lexeme, $2) LIMIT {_MAX_EXPANSIONS}""",
            _query(term),
            term.text,
        )
        return [row[0] for row in rows]

    async def _candidates(
        self, search: StoredSearch, kind: StoredKind, terms: Sequence[_ExpandedTerm]
    ) -> Sequence[Row]:
        """Return the number, length and matching stems of rows that are worth scoring."""
        bindings = Bindings(
            search.user if kind == "task" else search.project, [stem for _, stems in terms for stem in stems]
        )
        if search.phrases:
            conditions = [
                _quoted_condition(self._native, kind, phrase, bindings) for phrase in search.phrases
            ]
            return await self._rows(
                search, kind, " AND ".join(conditions), min(search.limit, _MAX_QUOTED), bindings
            )
        if not terms:
            return []
        rarest = rarest_terms([term for term, _ in terms])
        if rarest:
            some = " | ".join(_query(term.term) for term in rarest)
            condition = f"words @@ {bindings.add(some)}::tsquery"
            return await self._rows(search, kind, condition, MAX_SCORED, bindings, are_few=True)
        every = " & ".join(_query(term.term) for term, _ in terms)
        condition = f"words @@ {bindings.add(every)}::tsquery"
        return await self._rows(search, kind, condition, search.limit, bindings)

    async def _rows(
        self,
        search: StoredSearch,
        kind: StoredKind,
        condition: str,
        limit: int,
        bindings: Bindings,
        *,
        are_few: bool = False,
    ) -> Sequence[Row]:
        """Return the newest rows. `are_few`: find all of them first, because a limit may cost an index."""
        described = ENTITY_TYPES[kind]
        owned = owner_condition(self._driver, search, kind, bindings, "$1")
        if kind != "task":
            owned += f" AND {self._row_security.project_condition('$1', bindings)}"
        found = f"""SELECT {described.key} AS candidate, word_count, words FROM {described.table}
                    WHERE {owned} AND {condition}"""
        if are_few:
            found = f"WITH found AS MATERIALIZED ({found}) SELECT * FROM found"
        return await self._driver.rows(
            f"""SELECT candidate, word_count, ts_filter(setweight(words, 'A', $2::text[]), '{{a}}')::text
                FROM ({found} ORDER BY candidate DESC LIMIT {limit}) AS newest""",
            *bindings.values,
        )


def _score(row: Row, terms: Sequence[_ExpandedTerm], average_length: float) -> float:
    """Return the score of a candidate."""
    _, length, vector = row
    counts = read_counts(vector)
    score = 0.0
    for term, stems in terms:
        count = 0.0
        for stem in stems:
            count += counts.get(stem, 0.0)
        if count:
            score += term.weight * term_score(count, length, average_length)
    return round(score, SCORE_DIGITS)


def _quoted_condition(native: PostgresQueries, kind: StoredKind, phrase: str, bindings: Bindings) -> str:
    """SQL for whether a row contains a quoted text, by the indexes of trigrams and of stems."""
    indexed, plain = phrase_conditions(native, kind, phrase, bindings)
    *terms, beginning = [*map(_query, parse_query(phrase, incomplete=True).terms)] or [""]
    if terms:
        beginning = " & ".join([*terms[:-1], f"({terms[-1]} | {beginning})"])
    if beginning:
        plain = f"(words @@ {bindings.add(beginning)}::tsquery AND ({plain}))"
    return f"({indexed} OR {plain})"


def _query(term: SearchTerm) -> str:
    """Return the `tsquery` for rows with a term."""
    # A stem has only letters and digits.
    return f"'{term.text}'{':*' if term.is_prefix else ''}"
