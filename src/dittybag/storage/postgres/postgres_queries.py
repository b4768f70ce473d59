"""Queries for the indexes and the row-level security of PostgreSQL."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from hashlib import sha256
from typing import Any

from dittybag.domain.entities import Entity, Kind
from dittybag.domain.projects import Project
from dittybag.domain.ranked_search import searched_texts
from dittybag.domain.resources import Resource
from dittybag.domain.text import fold, search_words
from dittybag.storage.postgres.postgres_connections import PostgresConnection
from dittybag.storage.postgres.postgres_driver import PostgresDriver
from dittybag.storage.postgres.postgres_prompt_search import PromptSearch
from dittybag.storage.postgres.postgres_ranked_search import PostgresRankedSearch
from dittybag.storage.postgres.postgres_text_search import contains, has_trigram, pattern
from dittybag.storage.postgres.row_security import RowSecurity
from dittybag.storage.postgres.word_vectors import word_columns
from dittybag.storage.sql.connected_tables import ConnectedTables
from dittybag.storage.sql.sql_driver import Bindings, contains_pattern


class PostgresQueries:
    """See `dittybag.storage.sql.native_queries.NativeQueries`."""

    resource_counts_sql = "resource_counts"
    tagged_sql = "SELECT number FROM prompts WHERE project = $1 AND tags @> ARRAY[$2]"

    def __init__(self, driver: PostgresDriver, row_security: RowSecurity) -> None:
        self._driver = driver
        self._row_security = row_security
        prompts = PromptSearch(driver, row_security)
        self.find_prompts, self.find_first_prompts = prompts.find, prompts.find_first

    @cached_property
    def ranked(self) -> PostgresRankedSearch:
        return PostgresRankedSearch(self._driver, self, self._row_security)

    def has_uri(self, uri: str, bindings: Bindings) -> str:
        return f"uri_digest = {bindings.add(_digest(uri))} AND uri = {bindings.add(uri)}"

    def column_condition(self, column: str, text: str, bindings: Bindings) -> str:
        return contains(column, bindings.add(pattern(text)))

    def text_condition(self, kind: Kind, text: str, bindings: Bindings) -> str:
        wanted = bindings.add(pattern(text))
        return contains("content", wanted) if kind == "prompt" else f"folded_content LIKE {wanted}"

    def word_condition(self, text: str, columns: Sequence[str], bindings: Bindings) -> str:
        patterns = (bindings.add(contains_pattern(word)) for word in search_words(text))
        conditions = (" OR ".join(contains(name, wanted) for name in columns) for wanted in patterns)
        return " AND ".join(f"({condition})" for condition in conditions) or "true"

    async def word_candidates(self, text: str, bindings: Bindings) -> str:
        if not any(map(has_trigram, search_words(text))):
            return "true"
        columns = ("title", "notes")
        if self._row_security.is_operator:
            found = f"SELECT id FROM tasks WHERE {self.word_condition(text, columns, bindings)}"
            return f"id IN (WITH found AS MATERIALIZED ({found}) SELECT id FROM found)"
        own = Bindings()
        condition = self.word_condition(text, columns, own)
        return f"id = ANY({bindings.add(await self._row_security.find_keys('tasks', 'id', condition, own))})"

    async def resource_condition(self, condition: str, bindings: Bindings) -> tuple[str, Bindings]:
        if self._row_security.is_operator:
            found = f"SELECT number FROM resources WHERE {condition}"
            return (
                f"number = ANY(ARRAY(WITH found AS MATERIALIZED ({found}) SELECT number FROM found))",
                bindings,
            )
        keys = await self._row_security.find_keys("resources", "number", condition, bindings)
        return "number = ANY($1)", Bindings(keys)

    def as_operator(self) -> AbstractAsyncContextManager[None]:
        return self._row_security.as_operator()

    def entity_conditions(self, kind: Kind, entity: str) -> list[str]:
        return [f"kind = '{kind}' AND entity = {entity}"]

    def search_columns(self, entity: Entity, text: str | None) -> dict[str, Any]:
        if isinstance(entity, Project):
            return {}
        words = word_columns(searched_texts(entity, text))
        if not isinstance(entity, Resource):
            return words
        folded = None if text is None else fold(text)
        return {"uri_digest": _digest(entity.uri), "folded_content": folded, **words}

    async def delete_content_uses(self) -> None:
        used = """SELECT sha256, project FROM resources
                  UNION SELECT state::json ->> 'sha256', project
                  FROM changes, LATERAL (VALUES (before), (after)) AS states (state)
                  WHERE kind = 'resource' AND state::json ->> 'sha256' IS NOT NULL"""
        await self._driver.run(f"DELETE FROM content_uses WHERE (sha256, project) NOT IN ({used})")

    async def index(
        self,
        kind: Kind,
        before: Entity | None,
        after: Entity | None,
        content: Callable[[str], Awaitable[bytes]],
    ) -> None:
        """Do nothing: PostgreSQL maintains its indexes."""


def _digest(uri: str) -> bytes:
    return sha256(uri.encode(errors="surrogatepass")).digest()


class PostgresTables(ConnectedTables):
    """The tables on a connection to a server."""

    def __init__(self, connection: PostgresConnection) -> None:
        driver = PostgresDriver(connection)
        self.connection = connection
        self.row_security = RowSecurity(connection)
        super().__init__(driver, PostgresQueries(driver, self.row_security))
