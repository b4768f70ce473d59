"""Queries for the indexes of SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import apsw

from dittybag.domain.entities import ENTITY_TYPES, Entity, Kind
from dittybag.domain.queries import PromptQuery
from dittybag.domain.resources import Resource
from dittybag.domain.text import fold, search_words
from dittybag.storage.sql.connected_tables import ConnectedTables
from dittybag.storage.sql.entity_rows import folded_or_none
from dittybag.storage.sql.sql_driver import Bindings
from dittybag.storage.sqlite.sqlite_driver import SqliteDriver
from dittybag.storage.sqlite.sqlite_prompt_search import PromptSearch
from dittybag.storage.sqlite.sqlite_text_search import (
    INDEXES,
    WORD_INDEX,
    Contains,
    PendingIndex,
    candidates,
    index_text,
    words_match,
)

if TYPE_CHECKING:
    from dittybag.domain.ranked_search import StoredKind
    from dittybag.storage.sqlite.sqlite_ranked_search import SqliteRankedSearch

#: With more candidates than this, scanning all tasks is faster.
_MAX_CANDIDATES: Final = 20_000
#: This many characters of a text leave few candidates.
_LEAD_LENGTH: Final = 8

#: The condition of the partial index on entities; a query must repeat it to use the index.
_INDEXED: Final = "(action <> 'create' OR kind IN ('project', 'task'))"

_CONTENT: Final = "(SELECT CAST(bytes AS TEXT) FROM contents WHERE contents.sha256 = resources.sha256)"


#: A state of an entity, and the content of a resource, unless it is binary.
_Indexed: TypeAlias = tuple[Entity, str | None]


class SqliteQueries:
    """See `dittybag.storage.sql.native_queries.NativeQueries`."""

    resource_counts_sql = "(SELECT project, mime_type, 1 AS count FROM resources)"
    tagged_sql = "SELECT prompt FROM prompt_tags WHERE project = $1 AND tag = $2"

    def __init__(self, driver: SqliteDriver) -> None:
        self._driver = driver
        self.pending = PendingIndex(driver.connection)
        self._prompts = PromptSearch(driver, self.pending)
        self.find_prompts = self._prompts.find

    @cached_property
    def ranked(self) -> SqliteRankedSearch:
        """The ranked search, imported on first use because most processes do not search."""
        from dittybag.storage.sqlite.sqlite_ranked_search import SqliteRankedSearch

        return SqliteRankedSearch(self._driver, self)

    async def find_first_prompts(self, query: PromptQuery, most: int) -> tuple[int, list[int]]:
        found = await self._prompts.find_first(query, most)
        return len(found), found[query.offset : query.offset + query.limit]

    def has_uri(self, uri: str, bindings: Bindings) -> str:
        return f"uri = {bindings.add(uri)}"

    def column_condition(self, column: str, text: str, bindings: Bindings) -> str:
        return Contains(fold(text), bindings).in_column(column)

    def text_condition(self, kind: Kind, text: str, bindings: Bindings) -> str:
        contains = Contains(fold(text), bindings)
        if kind == "prompt":
            return contains.in_column("content")
        return f"(is_text AND {contains.in_column('content', _CONTENT)})"

    def word_condition(self, text: str, columns: Sequence[str], bindings: Bindings) -> str:
        words = [Contains(word, bindings) for word in search_words(text)]
        return " AND ".join(f"({' OR '.join(map(word.in_column, columns))})" for word in words) or "true"

    async def word_candidates(self, text: str, bindings: Bindings) -> str:
        self.pending.write()
        words = search_words(text)
        if len(words) > 1:
            return candidates("task", words_match(words), bindings)
        # The beginning of a word suffices, and more trigrams take longer.
        match = words_match(word[:_LEAD_LENGTH] for word in words)
        is_useful = match is not None and await self._is_rare(match)
        return candidates("task", match, bindings) if is_useful else "true"

    async def _is_rare(self, match: str) -> bool:
        """Whether the index finds few candidates."""
        sql = "SELECT count(*) FROM (SELECT 1 FROM task_index WHERE task_index MATCH $1 LIMIT $2)"
        found: int = await self._driver.value(sql, match, _MAX_CANDIDATES + 1)
        return found <= _MAX_CANDIDATES

    async def resource_condition(self, condition: str, bindings: Bindings) -> tuple[str, Bindings]:
        return condition, bindings

    @asynccontextmanager
    async def as_operator(self) -> AsyncIterator[None]:
        yield

    def entity_conditions(self, kind: Kind, entity: str) -> list[str]:
        indexed = f"kind = '{kind}' AND entity = {entity} AND {_INDEXED}"
        described = ENTITY_TYPES[kind]
        if described.key == "id":
            return [indexed]
        # The index does not have the change that created the entity, whose `seq` is the number of the entity.
        # The number of a deleted entity is in the change that deleted it.
        number = f"""coalesce(
            (SELECT number FROM {described.table} WHERE id = {entity}),
            (SELECT coalesce(after, before) ->> 'number' FROM changes WHERE {indexed} LIMIT 1))"""
        return [indexed, f"entity = {entity} AND NOT {_INDEXED} AND seq = {number}"]

    def search_columns(self, entity: Entity, text: str | None) -> dict[str, Any]:
        return {"folded_content": folded_or_none(text)} if isinstance(entity, Resource) else {}

    async def delete_content_uses(self) -> None:
        """Do nothing: the uses of contents are recorded for row-level security."""

    async def index(
        self,
        kind: Kind,
        before: Entity | None,
        after: Entity | None,
        content: Callable[[str], Awaitable[bytes]],
    ) -> None:
        entity = after if after is not None else before
        # A purged state may be applied to a row that does not exist.
        if kind == "project" or entity is None:
            return

        async def text_content(entity: Entity) -> str | None:
            if not isinstance(entity, Resource) or not entity.is_text:
                return None
            return (await content(entity.sha256)).decode()

        old, new = [
            None if entity is None else (entity, await text_content(entity)) for entity in (before, after)
        ]
        number = getattr(entity, ENTITY_TYPES[kind].key)
        self._index_trigrams(kind, number, old, new)
        self._index_words(kind, number, old, new)

    def _index_trigrams(
        self, kind: StoredKind, number: int, old: _Indexed | None, new: _Indexed | None
    ) -> None:
        before, after = (None if state is None else index_text(kind, *state) for state in (old, new))
        if before != after:
            values = None if after is None else (after,)
            self.pending.add(INDEXES[kind], number, values, in_index=before is not None)

    def _index_words(self, kind: StoredKind, number: int, old: _Indexed | None, new: _Indexed | None) -> None:
        # Imported here because most processes write nothing.
        from dittybag.domain import ranked_search
        from dittybag.storage.sqlite import word_index

        before, after = (
            None if state is None else ranked_search.searched_texts(*state) for state in (old, new)
        )
        if before != after:
            values = None if after is None else word_index.column_values(after)
            self.pending.add(WORD_INDEX, word_index.row_id(kind, number), values, in_index=before is not None)


class SqliteTables(ConnectedTables):
    """The tables on a connection to a file."""

    def __init__(self, connection: apsw.Connection) -> None:
        driver = SqliteDriver(connection)
        self.connection = connection
        self.queries = SqliteQueries(driver)
        super().__init__(driver, self.queries)
