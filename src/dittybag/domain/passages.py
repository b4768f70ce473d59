"""The passage of a text that shows why a search has found it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from dittybag.domain.ranked_search import ParsedQuery, SearchTerm
from dittybag.domain.stemming import stem
from dittybag.domain.text import SNIPPET_LENGTH, snippet_around
from dittybag.domain.words import WORD, fold_words, split_words

#: In characters. What follows is not searched for a passage.
_MAX_LENGTH: Final = 100_000
#: At most this many matches of a text are compared.
_MAX_MATCHES: Final = 200
#: Number of characters before the first match.
_LEAD: Final = 60
#: Matches within this many characters are shown together.
_SPAN: Final = SNIPPET_LENGTH - _LEAD

_SPACE: Final = re.compile(r"\s+")


def find_passage(texts: Sequence[str], query: ParsedQuery) -> str:
    """Return the passage with the most terms of a query, on one line; the start of a text if none has any."""
    for text in texts:
        for phrase in query.phrases:
            if fold_words(phrase) in fold_words(text):
                return _one_line(snippet_around(text, phrase))
    best, best_count = next(filter(None, texts), "")[:SNIPPET_LENGTH], 0
    for text in texts:
        start, count = _best_match(text, query)
        if count > best_count:
            best, best_count = _cut(text, start), count
    return _one_line(best)


def passage_start(text: str, query: ParsedQuery) -> int:
    """Return where the line begins from which on a text has the most terms of a query."""
    best, count = _best_match(text, query)
    # A line may be as long as the text.
    return max(text.rfind("\n", 0, best) + 1, best - _LEAD, 0) if count else 0


def _best_match(text: str, query: ParsedQuery) -> tuple[int, int]:
    """Return the first match with the most terms soon after it, and their number."""
    matches = list(_matches(text[:_MAX_LENGTH], query.terms))
    best, best_count = 0, 0
    for at, (start, _) in enumerate(matches):
        count = len({term for place, term in matches[at:] if place - start < _SPAN})
        if count > best_count:
            best, best_count = start, count
    return best, best_count


def match_spans(text: str, query: ParsedQuery) -> list[tuple[int, int]]:
    """Return where the words of a query and its quoted texts begin and end in a short text."""
    spans = [
        (word.start(), word.end()) for word in WORD.finditer(text) if _matched_term(word[0], query.terms)
    ]
    for phrase in query.phrases:
        spans += [found.span() for found in re.finditer(re.escape(phrase), text, re.IGNORECASE)]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _matches(text: str, terms: Sequence[SearchTerm]) -> Iterator[tuple[int, SearchTerm]]:
    """Yield the first matches: the index of the word, and the term."""
    count = 0
    for word in _candidates(text, terms):
        term = _matched_term(word[0], terms)
        if term is not None:
            yield word.start(), term
            count += 1
            if count == _MAX_MATCHES:
                return


def _candidates(text: str, terms: Sequence[SearchTerm]) -> Iterator[re.Match[str]]:
    """Return the words that may match a term."""
    if not text.isascii():
        return WORD.finditer(text)
    # A stem begins like its words, up to its last two letters.
    beginnings = "|".join({re.escape(term.text[: max(1, len(term.text) - 2)]) for term in terms})
    pattern = rf"(?<![^\W_])(?:{beginnings})[^\W_]*" if beginnings else "(?!)"
    return re.finditer(pattern, text, re.IGNORECASE)


def _matched_term(word: str, terms: Sequence[SearchTerm]) -> SearchTerm | None:
    parts = [word.lower()] if word.isascii() else split_words(word)
    for part in parts:
        root = stem(part)
        for term in terms:
            if part.startswith(term.text) if term.is_prefix else root == term.text:
                return term
    return None


def _cut(text: str, at: int) -> str:
    start = max(0, min(at - _LEAD, len(text) - SNIPPET_LENGTH))
    # Begin with a whole word.
    if start and (space := text.find(" ", start, at)) >= 0:
        start = space + 1
    end = start + SNIPPET_LENGTH
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"


def _one_line(text: str) -> str:
    return _SPACE.sub(" ", text).strip()
