"""Ranked search: what is searched of an entity, the terms of a query, and the score of a match (BM25)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from dittybag.domain.prompts import Prompt
from dittybag.domain.queries import OWN_TASKS, TaskView
from dittybag.domain.resources import Resource
from dittybag.domain.stemming import stem
from dittybag.domain.words import is_unspaced, split_words, stems_of

#: The kinds of stored entities that a search finds.
StoredKind = Literal["prompt", "resource", "task"]
STORED_KINDS: Final[tuple[StoredKind, ...]] = ("prompt", "resource", "task")

#: How much a word counts in titles and names, tags, descriptions and contents.
COLUMN_WEIGHTS: Final = (8.0, 4.0, 2.0, 1.0)
#: The usual parameters of BM25: the saturation of repeated words, and the influence of the length.
SATURATION: Final = 1.2
LENGTH_INFLUENCE: Final = 0.75

#: At most about this many rows are scored: those with the rarest terms, or else the newest ones.
MAX_SCORED: Final = 3000
#: Scores that differ by less are equal, and the newest row is first.
SCORE_DIGITS: Final = 4

#: More terms of a query are ignored.
_MAX_TERMS: Final = 32
_MAX_PHRASES: Final = 8
#: Beginnings of words after other words are longer than this.
_MIN_PREFIX: Final = 2
_PHRASE: Final = re.compile(r'"([^"]*)"|“([^”]*)”')

#: The stems of an entity: of its title and name, its tags, its description, and its content.
Columns = tuple[list[str], list[str], list[str], list[str]]


class SearchTerm(Struct, frozen=True):
    """The stem of a word of a query, or the beginning of words."""

    text: str
    is_prefix: bool = False


class ParsedQuery(Struct, frozen=True):
    """The words of a query, of which some must occur, and its quoted texts, which all must occur."""

    terms: tuple[SearchTerm, ...]
    phrases: tuple[str, ...] = ()


class Frequencies(Struct, frozen=True):
    """How many entities there are, how many words they have, and how many of them each term occurs in."""

    entities: int
    words: int
    terms: dict[SearchTerm, int]

    @property
    def average_length(self) -> float:
        return self.words / self.entities if self.entities else 1.0


class WeightedTerm(Struct, frozen=True):
    """A term of a query, how many stored entities it occurs in, and how much it counts."""

    term: SearchTerm
    frequency: int
    weight: float


class StoredSearch(Struct, frozen=True, kw_only=True):
    """A ranked search in a store."""

    project: int
    user: str
    #: The tasks that are searched.
    view: TaskView = OWN_TASKS
    kinds: tuple[StoredKind, ...]
    #: Rarest first.
    terms: tuple[WeightedTerm, ...]
    phrases: tuple[str, ...]
    frequencies: Frequencies
    limit: int


class StoredMatch(Struct, frozen=True):
    """A stored entity that a search has found."""

    kind: StoredKind
    #: The number of its row.
    number: int
    score: float


def parse_query(text: str, *, incomplete: bool = False) -> ParsedQuery:
    """Parse a query. `incomplete`: its last word is still being typed, so longer words match as well."""
    phrases = [found for match in _PHRASE.finditer(text) if (found := (match[1] or match[2] or "").strip())]
    unquoted = _PHRASE.sub(" ", text)
    terms = _terms(unquoted, incomplete=incomplete and text[-1:].strip() not in ("", '"', "”"))
    if not terms and not phrases and unquoted.strip():
        # A query of other characters alone is searched as it is.
        phrases = [unquoted.strip()]
    if not terms:
        # A quoted text may end within a word.
        terms = [term for phrase in phrases for term in _terms(phrase, incomplete=True)]
    unique = tuple(dict.fromkeys(terms))
    return ParsedQuery(unique[:_MAX_TERMS], tuple(dict.fromkeys(phrases))[:_MAX_PHRASES])


def _terms(text: str, *, incomplete: bool) -> list[SearchTerm]:
    words = split_words(text)
    terms = [term for at, word in enumerate(words) if (term := _term(word, words[at - 1] if at else ""))]
    # The whole word counts more than a longer one. After other words, one or two letters say too little.
    if (
        incomplete
        and words
        and not is_unspaced(words[-1])
        and (len(words[-1]) > _MIN_PREFIX or not terms[:-1])
    ):
        terms.append(SearchTerm(words[-1], is_prefix=True))
    return terms


def _term(word: str, before: str) -> SearchTerm | None:
    if not is_unspaced(word):
        return SearchTerm(stem(word))
    if len(word) > 1:
        return SearchTerm(word)
    # A single character is the end of the pair before it, or a query of its own.
    is_end = len(before) > 1 and is_unspaced(before) and before[-1] == word
    return None if is_end else SearchTerm(word, is_prefix=True)


def searched_texts(entity: Any, content: str | None) -> tuple[str, ...]:
    """Return the texts of an entity that are searched. `content`: that of a resource, unless it is binary."""
    if isinstance(entity, Prompt):
        tags = " ".join(entity.tags)
        return entity.title, entity.name, tags, entity.description or "", entity.content
    if isinstance(entity, Resource):
        about = f"{entity.description or ''}\n{entity.uri}"
        return entity.title or "", entity.name, "", about, content or ""
    tags = " ".join((entity.project or "", *entity.labels))
    texts = (entity.notes or "", *(comment.text for comment in entity.comments))
    return entity.title, "", tags, "", "\n".join(texts)


def columns_of(texts: Sequence[str]) -> Columns:
    """Return the stems of the texts of an entity: its title, name, tags, description and content."""
    title, name, tags, description, content = texts
    names = stems_of(title)
    # A name often follows from the title.
    names += [word for word in stems_of(name) if word not in names]
    return names, stems_of(tags), stems_of(description), stems_of(content)


def rarest_terms(terms: Iterable[WeightedTerm]) -> list[WeightedTerm]:
    """Return the first of these terms, rarest first, that few rows have."""
    chosen: list[WeightedTerm] = []
    total = 0
    for term in terms:
        total += term.frequency
        if total > MAX_SCORED:
            break
        chosen.append(term)
    return chosen


def term_weight(frequency: int, entities: int) -> float:
    """Return how much a term counts that occurs in this many of all entities: rare ones count more."""
    return math.log(1 + (entities - frequency + 0.5) / (frequency + 0.5))


def term_score(count: float, length: int, average_length: float) -> float:
    """Return the score of a term in a text of this length. `count`: of its occurrences, by column weight."""
    normalised = 1 - LENGTH_INFLUENCE + LENGTH_INFLUENCE * length / average_length
    return count * (SATURATION + 1) / (count + SATURATION * normalised)


def weighted_terms(
    terms: Iterable[SearchTerm], stored: Frequencies, others: Frequencies
) -> tuple[WeightedTerm, ...]:
    """Weigh terms by their frequency in the store and elsewhere. Rarest in the store first."""
    entities = stored.entities + others.entities
    weighted = (
        WeightedTerm(term, stored.terms[term], term_weight(stored.terms[term] + others.terms[term], entities))
        for term in terms
    )
    return tuple(sorted(weighted, key=lambda term: term.frequency))
