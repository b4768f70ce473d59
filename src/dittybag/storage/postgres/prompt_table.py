"""Prompts in PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from dittybag.domain.prompts import (
    Argument,
    Prompt,
    PromptListing,
    PromptOrder,
    PromptSummary,
    TagCount,
)
from dittybag.domain.queries import PromptQuery
from dittybag.domain.text import SNIPPET_LENGTH, snippet_around
from dittybag.storage.postgres.connections import PostgresConnection
from dittybag.storage.postgres.row_security import RowSecurity
from dittybag.storage.postgres.row_writes import ContentReader, KeyedTable
from dittybag.storage.postgres.rows import Bindings, Row, all_rows, first_row, is_storable, value
from dittybag.storage.postgres.text_search import contains, folded_or_none, pattern

TABLE: Final = KeyedTable("prompts", "number")

_COLUMNS: Final = (
    "number, id, project, name, title, description, content, tags, arguments, created_at, updated_at, version"
)
_ORDERS: Final[dict[PromptOrder, str]] = {
    "updated": "ORDER BY updated_at DESC, number DESC",
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


def _summary(row: Row, text: str) -> PromptSummary:
    return PromptSummary(
        id=row[0],
        name=row[1],
        title=row[2],
        description=row[3],
        snippet=snippet_around(row[4], text),
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

    async def page(self, query: PromptQuery) -> tuple[int, list[PromptSummary]]:
        total, numbers = await self._find(query)
        # One character more than is shown tells whether the text is longer.
        content = "content" if query.text else f"substr(content, 1, {SNIPPET_LENGTH + 1})"
        sql = f"""SELECT id, name, title, description, {content}, tags, arguments, created_at, updated_at
                  FROM prompts WHERE number = ANY($1) {_ORDERS[query.order]}"""
        rows = await all_rows(self._connection, sql, numbers) if numbers else []
        return total, [_summary(row, query.text) for row in rows]

    async def _find(self, query: PromptQuery) -> tuple[int, list[int]]:
        """Count the matching prompts; return the numbers of a page of them."""
        if not all(map(is_storable, (query.text, *query.all_tags))):
            return 0, []
        condition, bindings = _matching(query)
        order = _ORDERS[query.order]
        if len(bindings.values) == 1:
            total = await value(
                self._connection, "SELECT count(*) FROM prompts WHERE project = $1", query.project
            )
            if query.order == "name":
                # The index contains the name, so the rows of earlier pages are not read.
                names = f"SELECT name FROM prompts WHERE {condition} {order} LIMIT $2 OFFSET $3"
                condition += f" AND name = ANY(ARRAY({names}))"
            else:
                order += " LIMIT $2 OFFSET $3"
            sql = f"SELECT number FROM prompts WHERE {condition} {order}"
            return total, [
                row[0]
                for row in await all_rows(self._connection, sql, query.project, query.limit, query.offset)
            ]
        if query.max_matches is not None:
            numbers = await self._first_matches(condition, bindings, query)
            return len(numbers), numbers[query.offset : query.offset + query.limit]
        condition, bindings = await self._row_security.indexed_condition("prompts", condition, bindings)
        sql = f"SELECT number, count(*) OVER () FROM prompts WHERE {condition} {order}"
        page = f"LIMIT {bindings.add(query.limit)} OFFSET {bindings.add(query.offset)}"
        rows = await all_rows(self._connection, f"{sql} {page}", *bindings.values)
        if not rows and query.offset:
            return (await self._find(replace(query, limit=1, offset=0)))[0], []
        return (rows[0][1] if rows else 0), [row[0] for row in rows]

    async def _first_matches(self, condition: str, bindings: Bindings, query: PromptQuery) -> list[int]:
        """Return the numbers of the first matches."""
        order = _ORDERS[query.order]
        # Few matches are found fastest without an order, many with it.
        most = bindings.add(query.max_matches)
        sql = f"SELECT number FROM prompts WHERE {condition}"
        rows = await all_rows(self._connection, f"{sql} LIMIT {most}", *bindings.values)
        if len(rows) == query.max_matches:
            rows = await all_rows(self._connection, f"{sql} {order} LIMIT {most}", *bindings.values)
        elif rows:
            sql = f"SELECT number FROM prompts WHERE number = ANY($1) {order}"
            rows = await all_rows(self._connection, sql, [row[0] for row in rows])
        return [row[0] for row in rows]

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

    async def in_project(self, project: int) -> list[Prompt]:
        return await select(self._connection, "WHERE project = $1 ORDER BY number", project)


def _matching(query: PromptQuery) -> tuple[str, Bindings]:
    """Return the SQL condition of a query. $1 is the project."""
    bindings = Bindings(query.project)
    condition = "project = $1"
    if query.any_tag:
        condition += f" AND tags && {bindings.add([tag for tag in query.any_tag if is_storable(tag)])}"
    if query.all_tags:
        condition += f" AND tags @> {bindings.add(list(query.all_tags))}"
    if query.text:
        wanted = bindings.add(pattern(query.text))
        condition += f" AND ({contains('title', wanted)} OR {contains('content', wanted)})"
        if query.max_matches is not None and _TRIGRAM.search(query.text) is None:
            # Keeps PostgreSQL from reading the whole trigram index, which is slowest.
            condition += " IS TRUE"
    return condition, bindings


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
