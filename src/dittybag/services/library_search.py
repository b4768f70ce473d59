"""A search index of library prompts, which are in memory."""

from __future__ import annotations

from asyncio import Lock, sleep
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from dittybag.domain.errors import LibraryPromptNotFound, PromptUnusable
from dittybag.domain.libraries import LibraryPrompt
from dittybag.domain.ports import Libraries
from dittybag.domain.ranked_search import (
    COLUMN_WEIGHTS,
    Frequencies,
    SearchTerm,
    WeightedTerm,
    columns_of,
    term_score,
)
from dittybag.domain.words import fold_words, split_words

#: Maximum number of prompts that are indexed, and how many are read at a time.
_MAX_PROMPTS: Final = 20_000
_PAGE_SIZE: Final = 1000
#: After this many prompts, other requests have a turn.
_PER_TURN: Final = 20


class LibraryDocument(Struct, frozen=True, kw_only=True, eq=False):
    """A library prompt with its searched texts."""

    prompt: LibraryPrompt
    text: str
    #: The occurrences of each stem, by column weight.
    counts: dict[str, float]
    length: int

    @property
    def texts(self) -> tuple[str, ...]:
        """The title, name, tags, description and content."""
        return _texts(self.prompt, self.text)


class LibraryIndex:
    """The library prompts of one state of the libraries, by stem."""

    def __init__(self, documents: Sequence[LibraryDocument]) -> None:
        self.documents = documents
        self._words = sum(document.length for document in documents)
        self._by_stem: defaultdict[str, list[LibraryDocument]] = defaultdict(list)
        for document in documents:
            for stem in document.counts:
                self._by_stem[stem].append(document)
        self._stems = sorted(self._by_stem)

    def _stems_of(self, term: SearchTerm) -> Iterator[str]:
        """Yield the stems that a term matches."""
        if not term.is_prefix:
            if term.text in self._by_stem:
                yield term.text
            return
        for at in range(bisect_left(self._stems, term.text), len(self._stems)):
            if not self._stems[at].startswith(term.text):
                return
            yield self._stems[at]

    def _counts(self, term: SearchTerm) -> dict[LibraryDocument, float]:
        """Return the occurrences of a term in each prompt that has it, by column weight."""
        counts: defaultdict[LibraryDocument, float] = defaultdict(float)
        for stem in self._stems_of(term):
            for document in self._by_stem[stem]:
                counts[document] += document.counts[stem]
        return counts

    def frequencies(self, terms: Sequence[SearchTerm]) -> Frequencies:
        counts = {term: len(self._counts(term)) for term in terms}
        return Frequencies(len(self.documents), self._words, counts)

    def find(
        self, terms: Sequence[WeightedTerm], phrases: Sequence[str], average_length: float
    ) -> dict[LibraryDocument, float]:
        """Return the matching prompts with their scores."""
        scores: defaultdict[LibraryDocument, float] = defaultdict(float)
        for weighted in terms:
            for document, count in self._counts(weighted.term).items():
                scores[document] += weighted.weight * term_score(count, document.length, average_length)
        if not phrases:
            return scores
        folded = [fold_words(phrase) for phrase in phrases]
        return {
            document: scores.get(document, 0.0)
            for document in self.documents
            if all(any(phrase in fold_words(text) for text in document.texts) for phrase in folded)
        }

    def words(self) -> Iterator[str]:
        """Yield all words, for suggestions."""
        for document in self.documents:
            yield from split_words("\n".join(document.texts))


#: The index without libraries.
NO_LIBRARIES: Final = LibraryIndex(())


class LibrarySearch:
    """Keeps the index of the current state of the libraries."""

    def __init__(self, libraries: Libraries) -> None:
        self._libraries = libraries
        self._stamp: Hashable = None
        self._index: LibraryIndex | None = None
        self._lock = Lock()

    async def index(self) -> LibraryIndex:
        """Return the index of the current state of the libraries."""
        async with self._lock:
            # This waits until the libraries are loaded.
            first = await self._libraries.page("", _PAGE_SIZE)
            stamp = self._libraries.stamp()
            if self._index is None or stamp != self._stamp:
                documents = (self._index or NO_LIBRARIES).documents
                known = {document.prompt.name: document for document in documents}
                self._index = LibraryIndex(
                    [
                        await self._document(prompt, at, known)
                        for at, prompt in enumerate(await self._prompts(first))
                    ]
                )
                self._stamp = stamp
            return self._index

    async def _prompts(self, first: list[LibraryPrompt]) -> list[LibraryPrompt]:
        prompts = page = first
        while len(page) == _PAGE_SIZE and len(prompts) < _MAX_PROMPTS:
            page = await self._libraries.page(prompts[-1].name, _PAGE_SIZE)
            prompts = prompts + page
        return prompts

    async def _document(
        self, prompt: LibraryPrompt, number: int, known: dict[str, LibraryDocument]
    ) -> LibraryDocument:
        if number % _PER_TURN == 0:
            await sleep(0)
        try:
            _, _, text = await self._libraries.source(prompt.name)
        except (PromptUnusable, LibraryPromptNotFound):
            text = ""
        before = known.get(prompt.name)
        is_known = before is not None and (before.prompt, before.text) == (prompt, text)
        return before if before is not None and is_known else _new_document(prompt, text)


def _new_document(prompt: LibraryPrompt, text: str) -> LibraryDocument:
    columns = columns_of(_texts(prompt, text))
    counts: defaultdict[str, float] = defaultdict(float)
    for weight, column in zip(COLUMN_WEIGHTS, columns, strict=True):
        for stem, count in Counter(column).items():
            counts[stem] += weight * count
    return LibraryDocument(prompt=prompt, text=text, counts=dict(counts), length=sum(map(len, columns)))


def _texts(prompt: LibraryPrompt, text: str) -> tuple[str, ...]:
    return prompt.title or "", prompt.name, "", prompt.description or "", text
