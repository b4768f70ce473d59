"""Prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dittybag.domain.prompts import Argument, Prompt, PromptListing, PromptOrder, PromptSummary, TagCount
from dittybag.domain.queries import PromptQuery
from dittybag.domain.text import SNIPPET_LENGTH, snippet_around
from dittybag.storage.sql.entity_rows import EntityRows, json_reader
from dittybag.storage.sql.native_queries import NativeQueries
from dittybag.storage.sql.sql_driver import Row, SqlDriver, from_nearer_end

PROMPT_ORDERS: Final[dict[PromptOrder, str]] = {
    "updated": "updated_at DESC, number DESC",
    "created": "number DESC",
    "name": "name",
}

#: SQL for the number of prompts of project $1, which is kept. A count of 0 has no row.
PROMPT_COUNT: Final = "coalesce((SELECT count FROM prompt_counts WHERE project = $1), 0)"

_read_arguments: Final = json_reader(tuple[Argument, ...])


class PromptTable:
    """Prompts and their tags."""

    def __init__(self, driver: SqlDriver, rows: EntityRows, native: NativeQueries) -> None:
        self._driver = driver
        self._rows = rows
        self._native = native
        # Built once: these queries are the most frequent ones.
        self._by_id, self._by_name, self._by_title = (
            rows.select_sql(f"WHERE project = $1 AND {column} = $2") for column in ("id", "name", "title")
        )

    async def by_id(self, project: int, id: str) -> Prompt | None:
        row = await self._driver.row(self._by_id, project, id)
        return None if row is None else self._rows.from_row(row)

    async def by_name(self, project: int, name: str) -> Prompt | None:
        row = await self._driver.row(self._by_name, project, name)
        return None if row is None else self._rows.from_row(row)

    async def by_title(self, project: int, title: str) -> Prompt | None:
        row = await self._driver.row(self._by_title, project, title)
        return None if row is None else self._rows.from_row(row)

    async def name_taken(self, project: int, name: str) -> bool:
        return await self._is_taken("name", project, name)

    async def title_taken(self, project: int, title: str) -> bool:
        return await self._is_taken("title", project, title)

    async def _is_taken(self, column: str, project: int, value: str) -> bool:
        sql = f"SELECT 1 FROM prompts WHERE project = $1 AND {column} = $2"
        return await self._driver.value(sql, project, value) is not None

    async def names(self, project: int, limit: int) -> list[str]:
        """Return names in alphabetical order."""
        sql = "SELECT name FROM prompts WHERE project = $1 ORDER BY name LIMIT $2"
        return [row[0] for row in await self._driver.rows(sql, project, limit)]

    async def listing(self, project: int, after: int, limit: int) -> list[PromptListing]:
        """Return prompts in creation order, starting after number `after`."""
        sql = """SELECT number, name, title, description, arguments FROM prompts
                 WHERE project = $1 AND number > $2 ORDER BY number LIMIT $3"""
        rows = await self._driver.rows(sql, project, after, limit)
        return [PromptListing(row[0], row[1], row[2], row[3], _read_arguments(row[4])) for row in rows]

    async def in_project(self, project: int) -> list[Prompt]:
        return await self._rows.select("WHERE project = $1 ORDER BY number", project)

    async def page(self, query: PromptQuery) -> tuple[int, list[PromptSummary]]:
        """Count the matching prompts; return a page of them."""
        if not (query.text or query.any_tag or query.all_tags):
            return await self._unfiltered_page(query)
        if query.max_matches is None:
            total, numbers = await self._native.find_prompts(query)
        else:
            total, numbers = await self._native.find_first_prompts(query, query.max_matches)
        condition = self._driver.any_of("number", "$1")
        return total, await self._summaries(query, condition, self._driver.list_value(numbers))

    async def _unfiltered_page(self, query: PromptQuery) -> tuple[int, list[PromptSummary]]:
        total = await self._driver.value(f"SELECT {PROMPT_COUNT}", query.project)
        # A key that the index contains, so that only the rows of this page are read.
        key, of_project = ("name", "project = $1 AND ") if query.order == "name" else ("number", "")
        order, limit, offset = from_nearer_end(PROMPT_ORDERS[query.order], query.limit, query.offset, total)
        page = f"SELECT {key} FROM prompts WHERE project = $1 ORDER BY {order} LIMIT $2 OFFSET $3"
        # A number is unique, so SQLite must not look for it among those of the project.
        condition = f"{of_project}{key} IN ({page})"
        return total, await self._summaries(query, condition, query.project, limit, offset)

    async def _summaries(self, query: PromptQuery, condition: str, *values: Any) -> list[PromptSummary]:
        # One character more than is shown tells whether the text is longer.
        content = "content" if query.text else f"substr(content, 1, {SNIPPET_LENGTH + 1})"
        sql = f"""SELECT id, name, title, description, {content}, tags, arguments, created_at, updated_at
                  FROM prompts WHERE {condition} ORDER BY {PROMPT_ORDERS[query.order]}"""
        return [self._summary(row, query.text) for row in await self._driver.rows(sql, *values)]

    def _summary(self, row: Row, text: str) -> PromptSummary:
        return PromptSummary(
            id=row[0],
            name=row[1],
            title=row[2],
            description=row[3],
            snippet=snippet_around(row[4], text),
            tags=self._driver.read_list(row[5]),
            argument_count=len(_read_arguments(row[6])),
            created_at=row[7],
            updated_at=row[8],
        )

    async def existing_tags(self, project: int, tags: Sequence[str]) -> list[str]:
        """Return those of the tags that at least one prompt has."""
        sql = "SELECT 1 FROM tag_counts WHERE project = $1 AND tag = $2"
        return [tag for tag in tags if await self._driver.value(sql, project, tag) is not None]

    async def tags_in_use(self, project: int) -> list[TagCount]:
        """Return all tags, most used first, then by name."""
        sql = "SELECT tag, count FROM tag_counts WHERE project = $1 ORDER BY count DESC, tag"
        return [TagCount(*row) for row in await self._driver.rows(sql, project)]

    async def ids_with_tag(self, project: int, tag: str) -> list[str]:
        """Return the ids of all prompts with a tag."""
        sql = f"SELECT id FROM prompts WHERE number IN ({self._native.tagged_sql}) ORDER BY number"
        return [row[0] for row in await self._driver.rows(sql, project, tag)]
