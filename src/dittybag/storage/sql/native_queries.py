"""The port for queries that each database runs in its own way: search, tags, and hints for its indexes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

from dittybag.domain.entities import Entity, Kind
from dittybag.domain.queries import PromptQuery
from dittybag.storage.sql.sql_driver import Bindings

if TYPE_CHECKING:
    from dittybag.domain.ranked_search import Frequencies, SearchTerm, StoredMatch, StoredSearch


class RankedQueries(Protocol):
    """The part of `RankedTable` that each database runs in its own way."""

    async def frequencies(self, terms: Sequence[SearchTerm]) -> Frequencies:
        """Count all entities, their words, and those with each term, in all projects and of all users."""

    async def find(self, search: StoredSearch) -> list[StoredMatch]:
        """Return the best matches, best first; the newest first of those with equal scores."""


class NativeQueries(Protocol):
    """Finds rows with the indexes of one database. The results are those of every other database."""

    #: SQL for rows with a `project`, a `mime_type` and a `count`, whose sum is the number of resources.
    resource_counts_sql: str
    #: SQL for the numbers of the prompts of project $1 that have tag $2.
    tagged_sql: str

    @property
    def ranked(self) -> RankedQueries: ...

    async def find_prompts(self, query: PromptQuery) -> tuple[int, list[int]]:
        """Count the prompts with a text or tags; return the numbers of a page of them, in any order."""
        ...

    async def find_first_prompts(self, query: PromptQuery, most: int) -> tuple[int, list[int]]:
        """Like `find_prompts`, but count and return only the first `most` of all matches."""
        ...

    def has_uri(self, uri: str, bindings: Bindings) -> str:
        """SQL for whether a resource has this URI."""
        ...

    def column_condition(self, column: str, text: str, bindings: Bindings) -> str:
        """SQL for whether a column with a folded copy contains a text."""
        ...

    def text_condition(self, kind: Kind, text: str, bindings: Bindings) -> str:
        """SQL for whether the content of a prompt or resource contains a text."""
        ...

    def word_condition(self, text: str, columns: Sequence[str], bindings: Bindings) -> str:
        """SQL for whether one of the columns of a task contains each word of a text."""
        ...

    async def word_candidates(self, text: str, bindings: Bindings) -> str:
        """SQL for whether a task may contain each word of a text, according to an index."""
        ...

    async def resource_condition(self, condition: str, bindings: Bindings) -> tuple[str, Bindings]:
        """Return a condition for the same resources that uses an index of names, URIs and titles."""
        ...

    def as_operator(self) -> AbstractAsyncContextManager[None]:
        """See all rows in this block, within a transaction. What is read must not reach the user."""
        ...

    def entity_conditions(self, kind: Kind, entity: str) -> Sequence[str]:
        """SQL conditions, exactly one of which is true for each change of the entity of a placeholder."""
        ...

    def search_columns(self, entity: Entity, text: str | None) -> dict[str, Any]:
        """Return the values of further columns for searches. `text`: the content of a text resource."""
        ...

    async def delete_content_uses(self) -> None:
        """Delete the records of the use of contents that neither a resource nor the change log refers to."""
        ...

    async def index(
        self,
        kind: Kind,
        before: Entity | None,
        after: Entity | None,
        content: Callable[[str], Awaitable[bytes]],
    ) -> None:
        """Update the search index for a change of an entity. `content` reads the content of a resource."""
        ...
