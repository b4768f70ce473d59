"""Search across prompts, resources and tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from dittybag.domain.ports import Libraries, Store
from dittybag.services.caller import Caller, ScopedStore, checked_query

if TYPE_CHECKING:
    from dittybag.services.library_search import LibraryIndex, LibrarySearch

RankedKind = Literal["prompt", "library_prompt", "resource", "task"]
RANKED_KINDS: tuple[RankedKind, ...] = ("prompt", "library_prompt", "resource", "task")


class RankedQuery(Struct, frozen=True):
    """A ranked search."""

    #: Words, in any order, of which some must occur; and texts in quotation marks, which all must occur.
    text: str
    #: Empty for all kinds.
    kinds: tuple[RankedKind, ...] = ()
    limit: int = 10
    offset: int = 0
    #: Whether the last word is still being typed, so that longer words match as well.
    incomplete: bool = False


class RankedHit(Struct, frozen=True, kw_only=True):
    """A result of a ranked search."""

    kind: RankedKind
    #: How people and agents name it: a name, `library:prompt`, a URI, or `task:12`.
    ref: str
    title: str
    #: When it was last changed, in microseconds since 1970; `None` for a library prompt.
    at: int | None
    #: Who changed it last; `None` for a library prompt.
    actor: str | None
    #: The text around the words that were found.
    passage: str
    #: The id of a prompt or task, the URI of a resource, the name of a library prompt.
    id: str | int


class RankedPage(Struct, frozen=True):
    """A page of results, best first."""

    hits: list[RankedHit]
    #: The number of all results, of which at most the best 1000 are counted and returned.
    total: int
    #: If there are no results: the query with the nearest spelling that has some.
    suggestion: str | None = None


class SearchService:
    """Finds text in prompts, resources, tasks and library prompts."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)
        #: Searched as well; they must be loaded, or be loading.
        self.libraries: Libraries | None = None
        self._library_search: LibrarySearch | None = None

    async def ranked(self, caller: Caller, query: RankedQuery) -> RankedPage:
        """Return a page of the best matches, best first; of equally good ones, the newest first."""
        # Imported here because most processes do not search.
        from dittybag.services.library_search import NO_LIBRARIES
        from dittybag.services.ranked_search import search_ranked, wants_libraries

        checked_query(query.text)
        libraries = await self.library_index() if wants_libraries(query.kinds) else NO_LIBRARIES
        return await self._store.read(caller, search_ranked, query, libraries, slow=True)

    async def newest(self, caller: Caller, query: RankedQuery) -> RankedPage:
        """Return a page of all items of the kinds of a query, last changed first; see `list_newest`."""
        from dittybag.services.library_search import NO_LIBRARIES
        from dittybag.services.ranked_search import list_newest, wants_libraries

        libraries = await self.library_index() if wants_libraries(query.kinds) else NO_LIBRARIES
        return await self._store.read(caller, list_newest, query, libraries, slow=True)

    async def library_index(self) -> LibraryIndex:
        """Return the index of the library prompts, empty if there are no libraries."""
        from dittybag.services.library_search import NO_LIBRARIES, LibrarySearch

        if self.libraries is None:
            return NO_LIBRARIES
        self._library_search = self._library_search or LibrarySearch(self.libraries)
        return await self._library_search.index()
