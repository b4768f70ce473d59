"""The use case of the ranked search: stored entities and library prompts in one ranking."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.passages import find_passage
from dittybag.domain.ports import Transaction
from dittybag.domain.prompts import Prompt
from dittybag.domain.queries import OWN_TASKS, PromptQuery, ResourceQuery, TaskQuery, TaskView
from dittybag.domain.ranked_search import (
    STORED_KINDS,
    Frequencies,
    ParsedQuery,
    SearchTerm,
    StoredKind,
    StoredMatch,
    StoredSearch,
    parse_query,
    searched_texts,
    weighted_terms,
)
from dittybag.domain.resources import Resource
from dittybag.domain.spelling import MIN_LENGTH, nearest_word
from dittybag.domain.words import WORD, is_unspaced, split_words
from dittybag.services.caller import Caller, readable_project
from dittybag.services.library_search import LibraryDocument, LibraryIndex
from dittybag.services.search_service import RankedHit, RankedPage, RankedQuery
from dittybag.services.task_access import visible_view

#: At most this many results are ranked; a query with more must be narrowed.
MAX_RANKED: Final = 1000

#: At most this many entities are read for the spelling of a word, and of each at most this many characters.
_MAX_SPELLINGS: Final = 50
_SPELLING_LENGTH: Final = 5000
#: With more entities than this, words that only begin with the same letter are too many to find a near one.
_MAX_LETTER_ENTITIES: Final = 5000
#: Endings that stems do not have, so a word that is being typed may be longer than its stem.
_ENDINGS: Final = ("ments", "ings", "ations", "ness", "ly", "ed", "ers", "able", "ive", "ize", "al", "ful")
#: Shorter beginnings of words are not shortened.
_MIN_PREFIX: Final = 3
#: At most this many words of a query are corrected.
_MAX_CORRECTED: Final = 4


class RankedMatch(Struct, frozen=True):
    """A match with its rank."""

    score: float
    stored: StoredMatch | None = None
    library: LibraryDocument | None = None


async def search_ranked(
    transaction: Transaction, caller: Caller, query: RankedQuery, libraries: LibraryIndex
) -> RankedPage:
    """Return a page of the best matches, best first; of equally good ones, the newest first."""
    await readable_project(transaction, caller)
    search = _Search(transaction, caller, query, libraries)
    parsed = await search.complete(parse_query(query.text, incomplete=query.incomplete))
    matches = await search.matches(parsed)
    page = matches[query.offset : query.offset + query.limit]
    suggestion = None if matches else await search.suggest()
    return RankedPage(await search.hits(page, parsed), len(matches), suggestion)


async def list_newest(
    transaction: Transaction, caller: Caller, query: RankedQuery, libraries: LibraryIndex
) -> RankedPage:
    """Return a page of all items of the kinds of a query, last changed first, and count all of them.

    Library prompts, which have no date, come last.
    """
    await readable_project(transaction, caller)
    search = _Search(transaction, caller, query, libraries)
    total, matches = await search.newest()
    return RankedPage(await search.hits(matches, ParsedQuery((), ())), total)


async def find_best(
    transaction: Transaction, caller: Caller, query: RankedQuery, libraries: LibraryIndex
) -> list[Any]:
    """Return the best matches themselves: entities and `LibraryDocument`s, best first.

    This is faster than `search_ranked`, which looks for passages, authors and suggestions.
    """
    await readable_project(transaction, caller)
    search = _Search(transaction, caller, query, libraries)
    return await search.found(await search.matches(parse_query(query.text)))


class _Search:
    """One search in a transaction."""

    def __init__(
        self, transaction: Transaction, caller: Caller, query: RankedQuery, libraries: LibraryIndex
    ) -> None:
        self._transaction = transaction
        self._caller = caller
        self._query = query
        self._libraries = libraries
        #: The tasks that the caller can see, once it is known.
        self._view: TaskView | None = None
        self._kinds: tuple[StoredKind, ...] = tuple(
            kind for kind in STORED_KINDS if not query.kinds or kind in query.kinds
        )

    async def newest(self) -> tuple[int, list[RankedMatch]]:
        """Count all items, and return those on the page, last changed first."""
        start, end = self._query.offset, self._query.offset + self._query.limit
        counts, items = [len(self._libraries.documents)], []
        for kind in self._kinds:
            count, newest = await self._newest_of(kind, end)
            counts.append(count)
            items += [(kind, item) for item in newest]
        items.sort(key=lambda item: -item[1].updated_at)
        matches = []
        for kind, item in items[start:end]:
            entity = await self._transaction.find("prompt", id=item.id) if kind == "prompt" else item
            if entity is not None:
                number = getattr(entity, ENTITY_TYPES[kind].key)
                matches.append(RankedMatch(0, stored=StoredMatch(kind, number, 0)))
        stored = sum(counts[1:])
        documents = self._libraries.documents[max(start - stored, 0) : max(end - stored, 0)]
        return sum(counts), [*matches, *(RankedMatch(0, library=document) for document in documents)]

    async def _newest_of(self, kind: StoredKind, limit: int) -> tuple[int, Sequence[Any]]:
        project, user = self._caller.project, self._caller.user
        if kind == "prompt":
            return await self._transaction.prompts.page(PromptQuery(project=project, limit=limit))
        if kind == "resource":
            return await self._transaction.resources.page(ResourceQuery(project=project, limit=limit))
        view = await visible_view(self._transaction, self._caller)
        groups = await self._transaction.tasks.groups(user, view)
        query = TaskQuery(user=user, view=view, order="updated", limit=limit)
        return sum(group.total for group in groups), await self._transaction.tasks.page(query)

    async def complete(self, parsed: ParsedQuery) -> ParsedQuery:
        """Return the query with the beginnings of words that occur.

        The index has stems: of `deployment`, the first letters that it has are `deploy`, not `deploym`.
        """
        terms = [await self._completed(term) if term.is_prefix else term for term in parsed.terms]
        return ParsedQuery(tuple(dict.fromkeys(terms)), parsed.phrases)

    async def _completed(self, term: SearchTerm) -> SearchTerm:
        for end in range(len(term.text), _MIN_PREFIX - 1, -1):
            shorter = SearchTerm(term.text[:end], is_prefix=True)
            ending = term.text[end:]
            if any(known.startswith(ending) for known in _ENDINGS) and await self._occurs(shorter):
                return shorter
        return term

    async def _occurs(self, term: SearchTerm) -> bool:
        stored = await self._transaction.ranked.frequencies((term,))
        return bool(stored.terms[term] or self._libraries.frequencies((term,)).terms[term])

    async def matches(self, parsed: ParsedQuery, *, limit: int = MAX_RANKED) -> list[RankedMatch]:
        """Return the matches, best first, of which at most `limit` are stored."""
        stored = await self._transaction.ranked.frequencies(parsed.terms)
        others = self._libraries.frequencies(parsed.terms)
        terms = weighted_terms(parsed.terms, stored, others)
        found = await self._stored(parsed.phrases, stored, terms, limit=limit)
        matches = [RankedMatch(match.score, stored=match) for match in found]
        average = Frequencies(stored.entities + others.entities, stored.words + others.words, {})
        scores = self._libraries.find(terms, parsed.phrases, average.average_length)
        matches += [RankedMatch(round(score, 4), library=document) for document, score in scores.items()]
        matches.sort(key=lambda match: -match.score)
        return await self._newest_first(matches[:MAX_RANKED])

    async def _stored(
        self, phrases: tuple[str, ...], frequencies: Frequencies, terms: Any, *, limit: int = MAX_RANKED
    ) -> list[StoredMatch]:
        if not self._kinds or not (phrases or any(frequencies.terms.values())):
            return []
        if self._view is None and "task" in self._kinds:
            self._view = await visible_view(self._transaction, self._caller)
        search = StoredSearch(
            project=self._caller.project,
            user=self._caller.user,
            view=OWN_TASKS if self._view is None else self._view,
            kinds=self._kinds,
            terms=terms,
            phrases=phrases,
            frequencies=frequencies,
            limit=limit,
        )
        return await self._transaction.ranked.find(search)

    async def _newest_first(self, matches: list[RankedMatch]) -> list[RankedMatch]:
        """Sort matches with equal scores by time, as far as they are on the page."""
        first, last = self._query.offset, min(self._query.offset + self._query.limit, len(matches)) - 1
        if last < first:
            return matches
        begin = next(at for at, match in enumerate(matches) if match.score == matches[first].score)
        end = len(matches)
        while matches[end - 1].score < matches[last].score:
            end -= 1
        part = matches[begin:end]
        if len({match.score for match in part}) == len(part):
            return matches
        times = {
            (kind, number): entity.updated_at
            for (kind, number), entity in (await self._load([match.stored for match in part])).items()
        }

        def key(match: RankedMatch) -> tuple[float, int]:
            stored = match.stored
            return -match.score, -times.get((stored.kind, stored.number), 0) if stored else 0

        return [*matches[:begin], *sorted(part, key=key), *matches[end:]]

    async def _load(self, matches: Sequence[StoredMatch | None]) -> dict[tuple[StoredKind, int], Any]:
        """Return the entities of matches that the caller can see, by kind and number."""
        loaded: dict[tuple[StoredKind, int], Any] = {}
        for kind in self._kinds:
            numbers = [match.number for match in matches if match is not None and match.kind == kind]
            if numbers:
                for entity in await self._transaction.ranked.entities(kind, numbers):
                    loaded[kind, getattr(entity, ENTITY_TYPES[kind].key)] = entity
        return loaded

    async def found(self, matches: Sequence[RankedMatch]) -> list[Any]:
        """Return the entities and library documents of the page that the query wants."""
        page = matches[self._query.offset : self._query.offset + self._query.limit]
        entities = await self._load([match.stored for match in page])
        found = (
            match.library if match.stored is None else entities.get((match.stored.kind, match.stored.number))
            for match in page
        )
        return [item for item in found if item is not None]

    async def hits(self, page: Sequence[RankedMatch], parsed: ParsedQuery) -> list[RankedHit]:
        """Return matches as results."""
        entities = await self._load([match.stored for match in page])
        actors = await self._last_actors(entities)
        hits = []
        for match in page:
            if match.library is not None:
                hits.append(_library_hit(match.library, parsed))
            elif match.stored is not None:
                entity = entities.get((match.stored.kind, match.stored.number))
                if entity is not None:
                    actor = actors.get((match.stored.kind, str(entity.id)))
                    hits.append(await self._stored_hit(match.stored.kind, entity, actor, parsed))
        return hits

    async def _last_actors(
        self, entities: Mapping[tuple[StoredKind, int], Any]
    ) -> dict[tuple[StoredKind, str], str]:
        """Return who made the last change of each entity, by kind and id."""
        found: dict[tuple[StoredKind, str], str] = {}
        for kind in self._kinds:
            ids = [str(entity.id) for (each, _), entity in entities.items() if each == kind]
            actors = await self._transaction.changes.last_actors(kind, ids)
            found |= {(kind, entity): actor for entity, actor in actors.items()}
        return found

    async def _stored_hit(
        self, kind: StoredKind, entity: Any, actor: str | None, parsed: ParsedQuery
    ) -> RankedHit:
        title, name, _, description, content = await self._texts(entity)
        return RankedHit(
            kind=kind,
            ref=reference_of(entity),
            title=title or name,
            at=entity.updated_at,
            actor=actor,
            passage=find_passage((content, description), parsed),
            id=entity.uri if isinstance(entity, Resource) else entity.id,
        )

    async def _texts(self, entity: Any) -> tuple[str, ...]:
        is_text = isinstance(entity, Resource) and entity.is_text
        content = (await self._transaction.content(entity.sha256)).decode() if is_text else None
        return searched_texts(entity, content)

    async def suggest(self) -> str | None:
        """Return the query with the nearest spelling of its words that has results; None if there is none."""
        text = self._query.text
        corrected = 0
        for word in dict.fromkeys(split_words(text)):
            if len(word) < MIN_LENGTH or is_unspaced(word) or corrected == _MAX_CORRECTED:
                continue
            nearest = await self._nearest(word)
            if nearest is not None:
                text = _replace_word(text, word, nearest)
                corrected += 1
        if not corrected:
            return None
        parsed = await self.complete(parse_query(text))
        return text if await self.matches(parsed, limit=_MAX_SPELLINGS) else None

    async def _nearest(self, word: str) -> str | None:
        nearest = nearest_word(word, self._libraries.words())
        if nearest is not None:
            return nearest
        # Words with the same beginning, then with the same end.
        entities = (await self._transaction.ranked.frequencies(())).entities
        shortest = 1 if entities <= _MAX_LETTER_ENTITIES else 2
        for length in range(len(word) - 1, shortest - 1, -1):
            found = await self._words_beginning(word[:length])
            if (nearest := nearest_word(word, found)) is not None:
                return nearest
        return nearest_word(word, await self._words_with(word[-max(3, len(word) - 2) :]))

    async def _words_beginning(self, prefix: str) -> list[str]:
        """Return the words of some entities with words that begin with these letters."""
        term = SearchTerm(prefix, is_prefix=True)
        return await self._words_of(ParsedQuery((term,)))

    async def _words_with(self, text: str) -> list[str]:
        """Return the words of some entities that contain these letters."""
        return await self._words_of(ParsedQuery((), (text,)))

    async def _words_of(self, parsed: ParsedQuery) -> list[str]:
        stored = await self._transaction.ranked.frequencies(parsed.terms)
        terms = weighted_terms(parsed.terms, stored, Frequencies(0, 0, dict.fromkeys(parsed.terms, 0)))
        found = await self._stored(parsed.phrases, stored, terms, limit=_MAX_SPELLINGS)
        entities = await self._load(found)
        texts = [
            text[:_SPELLING_LENGTH] for entity in entities.values() for text in await self._texts(entity)
        ]
        return split_words("\n".join(texts))


def _library_hit(document: LibraryDocument, parsed: ParsedQuery) -> RankedHit:
    prompt = document.prompt
    return RankedHit(
        kind="library_prompt",
        ref=prompt.name,
        title=prompt.title or prompt.name,
        at=None,
        actor=None,
        passage=find_passage((document.text, prompt.description or ""), parsed),
        id=prompt.name,
    )


def reference_of(entity: Any) -> str:
    """Return how people and agents name an entity: by its name, its URI, or as `task:12`."""
    if isinstance(entity, Prompt):
        return entity.name
    return entity.uri if isinstance(entity, Resource) else f"task:{entity.id}"


def _replace_word(text: str, word: str, nearest: str) -> str:
    """Replace a word of a query, whatever its case and accents."""
    return WORD.sub(lambda found: nearest if split_words(found[0]) == [word] else found[0], text)


def wants_libraries(kinds: Collection[str]) -> bool:
    """Whether a search for these kinds finds library prompts."""
    return not kinds or "library_prompt" in kinds
