"""Prompts in PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from dittybag.domain.prompts import (
    Argument,
    Prompt,
    PromptEntry,
    PromptListing,
    PromptOrder,
    PromptSummary,
    TagCount,
)
from dittybag.domain.text import SNIPPET_LENGTH, snippet_around, snippet_start
from dittybag.storage.postgres.connections import PostgresConnection
from dittybag.storage.postgres.row_security import RowSecurity
from dittybag.storage.postgres.row_writes import ContentReader, KeyedTable
from dittybag.storage.postgres.rows import Bindings, Row, all_rows, first_row, is_storable, value
from dittybag.storage.postgres.text_search import contains, folded_or_none, pattern

TABLE: Final = KeyedTable("prompts", "number")

_COLUMNS: Final = (
    "number, id, project, name, title, description, content, tags, arguments, created_at, updated_at, version"
)
#: The snippet has one character more than is shown, which tells whether the text is longer.
_SUMMARY: Final = f"id, name, title, substr(content, 1, {SNIPPET_LENGTH + 1}), tags, created_at, updated_at"
_FULL_SUMMARY: Final = "id, name, title, content, tags, created_at, updated_at"
_NEWEST_FIRST: Final = "ORDER BY updated_at DESC, number DESC"
_ORDERS: Final[dict[PromptOrder, str]] = {
    "updated": _NEWEST_FIRST,
    "created": "ORDER BY number DESC",
    "name": "ORDER BY name",
}

#: A query without such a sequence cannot use the trigram index.
_TRIGRAM: Final = re.compile(r"[^\W_]{3}")

_arguments: Final = msgspec.json.Decoder(tuple[Argument, ...])


def _read_arguments(text: str) -> tuple[Argument, ...]:
    return () if text == "[]" else _arguments.decode(text)


def _prompt(row: Row) -> Prompt:
    return Prompt(
        number=row[0],
        id=row[1],
        project=row[2],
        name=row[3],
        title=row[4],
        description=row[5],
        content=row[6],
        tags=tuple(row[7]),
        arguments=_read_arguments(row[8]),
        created_at=row[9],
        updated_at=row[10],
        version=row[11],
    )


def _summary(row: Row, snippet: str) -> PromptSummary:
    return PromptSummary(row[0], row[1], row[2], snippet, tuple(row[4]), row[5], row[6])


def _entry(row: Row, query: str) -> PromptEntry:
    return PromptEntry(
        id=row[0],
        name=row[1],
        title=row[2],
        description=row[3],
        snippet=snippet_around(row[4], query),
        tags=tuple(row[5]),
        argument_count=len(_read_arguments(row[6])),
        created_at=row[7],
        updated_at=row[8],
    )


class PromptTable:
    """See `dittybag.domain.ports.PromptRepository`."""

    def __init__(self, connection: PostgresConnection, row_security: RowSecurity) -> None:
        self._connection = connection
        self._row_security = row_security

    async def by_id(self, project: int, id: str) -> Prompt | None:
        return await self._select_one("project = $1 AND id = $2", project, id)

    async def by_name(self, project: int, name: str) -> Prompt | None:
        return await self._select_one("project = $1 AND name = $2", project, name)

    async def by_title(self, project: int, title: str) -> Prompt | None:
        return await self._select_one("project = $1 AND title = $2", project, title)

    async def _select_one(self, condition: str, *bindings: Any) -> Prompt | None:
        sql = f"SELECT {_COLUMNS} FROM prompts WHERE {condition}"
        row = await first_row(self._connection, sql, *bindings)
        return None if row is None else _prompt(row)

    async def name_taken(self, project: int, name: str) -> bool:
        sql = "SELECT 1 FROM prompts WHERE project = $1 AND name = $2"
        return await value(self._connection, sql, project, name) is not None

    async def title_taken(self, project: int, title: str) -> bool:
        sql = "SELECT 1 FROM prompts WHERE project = $1 AND title = $2"
        return await value(self._connection, sql, project, title) is not None

    async def names(self, project: int, limit: int) -> list[str]:
        sql = "SELECT name FROM prompts WHERE project = $1 ORDER BY name LIMIT $2"
        return [row[0] for row in await all_rows(self._connection, sql, project, limit)]

    async def listing(self, project: int, after: int, limit: int) -> list[PromptListing]:
        rows = await all_rows(
            self._connection,
            """SELECT number, name, title, description, arguments FROM prompts
               WHERE project = $1 AND number > $2 ORDER BY number LIMIT $3""",
            project,
            after,
            limit,
        )
        return [PromptListing(row[0], row[1], row[2], row[3], _read_arguments(row[4])) for row in rows]

    async def count(self, project: int) -> int:
        return int(await value(self._connection, "SELECT count(*) FROM prompts WHERE project = $1", project))

    async def recent(self, project: int, limit: int, offset: int) -> list[PromptSummary]:
        sql = f"SELECT {_SUMMARY} FROM prompts WHERE project = $1 {_NEWEST_FIRST} LIMIT $2 OFFSET $3"
        rows = await all_rows(self._connection, sql, project, limit, offset)
        return [_summary(row, snippet_start(row[3])) for row in rows]

    async def by_tags(
        self, project: int, tags: Sequence[str], limit: int, offset: int
    ) -> tuple[int, list[PromptSummary]]:
        wanted = Bindings(project, [tag for tag in tags if is_storable(tag)])
        condition, bindings = await self._row_security.indexed_condition(
            "prompts", "project = $1 AND tags && $2", wanted
        )
        sql = f"SELECT count(*) FROM prompts WHERE {condition}"
        total = await value(self._connection, sql, *bindings.values)
        page = f"LIMIT {bindings.add(limit)} OFFSET {bindings.add(offset)}"
        rows = await all_rows(
            self._connection,
            f"SELECT {_SUMMARY} FROM prompts WHERE {condition} {_NEWEST_FIRST} {page}",
            *bindings.values,
        )
        return int(total), [_summary(row, snippet_start(row[3])) for row in rows]

    async def existing_tags(self, project: int, tags: Sequence[str]) -> list[str]:
        sql = "SELECT 1 FROM prompts WHERE project = $1 AND tags @> ARRAY[$2] LIMIT 1"
        return [tag for tag in tags if await value(self._connection, sql, project, tag) is not None]

    async def tags_in_use(self, project: int) -> list[TagCount]:
        sql = """SELECT tag, count(*) AS uses FROM prompts, unnest(tags) AS tag WHERE project = $1
                 GROUP BY tag ORDER BY uses DESC, tag"""
        return [TagCount(*row) for row in await all_rows(self._connection, sql, project)]

    async def ids_with_tag(self, project: int, tag: str) -> list[str]:
        sql = "SELECT id FROM prompts WHERE project = $1 AND tags @> ARRAY[$2] ORDER BY number"
        return [row[0] for row in await all_rows(self._connection, sql, project, tag)]

    async def search(
        self, project: int, query: str, limit: int, offset: int, tags: Sequence[str] = ()
    ) -> tuple[int, list[PromptSummary]]:
        bindings = Bindings(project, pattern(query))
        condition = f"project = $1 AND ({contains('title', '$2')} OR {contains('content', '$2')})"
        if tags:
            condition += f" AND tags && {bindings.add([tag for tag in tags if is_storable(tag)])}"
        condition, bindings = await self._row_security.indexed_condition("prompts", condition, bindings)
        page = f"LIMIT {bindings.add(limit)} OFFSET {bindings.add(offset)}"
        rows = await all_rows(
            self._connection,
            f"SELECT number, count(*) OVER () FROM prompts WHERE {condition} {_NEWEST_FIRST} {page}",
            *bindings.values,
        )
        if not rows and offset:
            return (await self.search(project, query, 1, 0, tags))[0], []
        return (rows[0][1] if rows else 0), await self._summaries([row[0] for row in rows], query)

    async def _summaries(self, numbers: list[int], query: str) -> list[PromptSummary]:
        sql = f"SELECT {_FULL_SUMMARY} FROM prompts WHERE number = ANY($1) {_NEWEST_FIRST}"
        rows = await all_rows(self._connection, sql, numbers) if numbers else []
        return [_summary(row, snippet_around(row[3], query)) for row in rows]

    async def filter(
        self,
        project: int,
        *,
        query: str,
        tags: Sequence[str],
        order: PromptOrder,
        limit: int,
        offset: int,
        max_matches: int,
    ) -> tuple[int, list[PromptEntry]]:
        if query or tags:
            numbers = await self._matching_numbers(project, query, tags, order, max_matches)
            shown = numbers[offset : offset + limit]
            return len(numbers), await self._entries(project, "number", shown, order, query)
        # A key that the index contains, so that the rows of earlier pages are not read.
        key = "name" if order == "name" else "number"
        sql = f"SELECT {key} FROM prompts WHERE project = $1 {_ORDERS[order]} LIMIT $2 OFFSET $3"
        rows = await all_rows(self._connection, sql, project, limit, offset)
        entries = await self._entries(project, key, [row[0] for row in rows], order, "")
        return await self.count(project), entries

    async def _matching_numbers(
        self, project: int, query: str, tags: Sequence[str], order: PromptOrder, max_matches: int
    ) -> list[int]:
        """Return the numbers of the first prompts that contain the text and have all of the tags."""
        bindings = Bindings(project, max_matches)
        conditions = "project = $1"
        if tags:
            if not all(map(is_storable, tags)):
                return []
            conditions += f" AND tags @> {bindings.add(list(tags))}"
        if query:
            wanted = bindings.add(pattern(query))
            conditions += f" AND ({contains('title', wanted)} OR {contains('content', wanted)})"
            if _TRIGRAM.search(query) is None:
                # Keeps PostgreSQL from reading the whole trigram index, which is slowest.
                conditions += " IS TRUE"
        # Few matches are found fastest without an order, many with it.
        sql = f"SELECT number FROM prompts WHERE {conditions} LIMIT $2"
        rows = await all_rows(self._connection, sql, *bindings.values)
        if len(rows) == max_matches:
            sql = f"SELECT number FROM prompts WHERE {conditions} {_ORDERS[order]} LIMIT $2"
            rows = await all_rows(self._connection, sql, *bindings.values)
        elif rows:
            sql = f"SELECT number FROM prompts WHERE number = ANY($1) {_ORDERS[order]}"
            rows = await all_rows(self._connection, sql, [row[0] for row in rows])
        return [row[0] for row in rows]

    async def _entries(
        self, project: int, key: str, chosen: list[Any], order: PromptOrder, query: str
    ) -> list[PromptEntry]:
        content = "content" if query else f"substr(content, 1, {SNIPPET_LENGTH + 1})"
        sql = f"""SELECT id, name, title, description, {content}, tags, arguments, created_at, updated_at
                  FROM prompts WHERE project = $1 AND {key} = ANY($2) {_ORDERS[order]}"""
        rows = await all_rows(self._connection, sql, project, chosen) if chosen else []
        return [_entry(row, query) for row in rows]

    async def in_project(self, project: int) -> list[Prompt]:
        return await select(self._connection, "WHERE project = $1 ORDER BY number", project)


async def select(connection: PostgresConnection, clauses: str, *values: Any) -> list[Prompt]:
    """Return the prompts of any project that a query with these clauses finds."""
    rows = await all_rows(connection, f"SELECT {_COLUMNS} FROM prompts {clauses}", *values)
    return [_prompt(row) for row in rows]


async def row_values(content: ContentReader, prompt: Prompt) -> dict[str, Any]:
    return {
        **msgspec.structs.asdict(prompt),
        "arguments": msgspec.json.encode(prompt.arguments).decode() if prompt.arguments else "[]",
        "folded_title": folded_or_none(prompt.title),
        "folded_content": folded_or_none(prompt.content),
    }
