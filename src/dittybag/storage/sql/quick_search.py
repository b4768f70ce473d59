"""Search as you type: fast, but not exhaustive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dittybag.domain.entities import Kind
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.text import fold, snippet_around, snippet_around_words
from dittybag.storage.sql.content_table import ContentTable
from dittybag.storage.sql.entity_rows import EntityRows
from dittybag.storage.sql.native_queries import NativeQueries
from dittybag.storage.sql.sql_driver import Bindings, SqlDriver, contains_pattern

#: The column with the project or user that a row belongs to.
OWNERS: Final[dict[Kind, str]] = {"prompt": "project", "resource": "project", "task": '"user"'}
#: An order in which an index has the rows of an owner.
NEWEST: Final[dict[Kind, str]] = {
    "prompt": "updated_at DESC, number DESC",
    "resource": "number DESC",
    "task": "priority DESC, id",
}


class QuickSearch:
    """Finds some entities whose titles or texts contain a text."""

    def __init__(
        self,
        driver: SqlDriver,
        rows: Mapping[Kind, EntityRows],
        native: NativeQueries,
        contents: ContentTable,
    ) -> None:
        self._driver = driver
        self._rows = rows
        self._native = native
        self._contents = contents

    async def find(
        self, kind: Kind, project: int, user: str, query: str, limit: int
    ) -> list[tuple[str | int, str, str]]:
        """See `dittybag.domain.ports.ProjectRepository`."""
        rows = self._rows[kind]
        key = rows.type.key
        titles, texts = await self._native.newest(kind, user if kind == "task" else project, query)

        async def matching(source: str, bindings: Bindings, *, in_text: bool) -> list[int]:
            condition = self._condition(kind, query, bindings, in_text=in_text)
            sql = (
                f"SELECT {key} FROM {source} AND {condition} ORDER BY {key} DESC LIMIT {bindings.add(limit)}"
            )
            return [row[0] for row in await self._driver.rows(sql, *bindings.values)]

        keys = await matching(*titles, in_text=False)
        if len(keys) < limit:
            keys += [number for number in await matching(*texts, in_text=True) if number not in keys]
        listed = self._driver.list_value(keys[:limit])
        found = await rows.select(f"WHERE {self._driver.any_of(key, '$1')}", listed) if keys else []
        found.sort(key=lambda entity: keys.index(getattr(entity, key)))
        return [await self._hit(entity, query) for entity in found]

    def _condition(self, kind: Kind, query: str, bindings: Bindings, *, in_text: bool) -> str:
        if kind == "task":
            return self._native.word_condition(query, ("title", "notes")[: 1 + in_text], bindings)
        if in_text:
            return self._native.text_condition(kind, query, bindings)
        title = self._native.column_condition("title", query, bindings)
        return f"({title} OR lower(name) LIKE {bindings.add(contains_pattern(fold(query)))} ESCAPE '\\')"

    async def _hit(self, entity: Any, query: str) -> tuple[str | int, str, str]:
        """Return the address, title and snippet of an entity."""
        if isinstance(entity, Prompt):
            return entity.id, entity.title, snippet_around(entity.content, query)
        if isinstance(entity, Resource):
            is_text = entity.is_text
            text = (await self._contents.read(entity.sha256)).decode() if is_text else entity.description
            return entity.uri, entity.title or entity.name, snippet_around(text or "", query)
        return entity.id, entity.title, snippet_around_words(entity.notes or "", query)
