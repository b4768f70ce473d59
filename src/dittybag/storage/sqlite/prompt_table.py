"""Prompts in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import apsw
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
from dittybag.domain.text import SNIPPET_LENGTH, fold, snippet_around, snippet_start
from dittybag.storage.sqlite.row_writes import KeyedTable
from dittybag.storage.sqlite.rows import Bindings, Row, all_rows, first_row, value
from dittybag.storage.sqlite.text_search import PendingIndex, SearchTerm, contains, folded_or_none

TABLE: Final = KeyedTable("prompts", "number")
INDEX: Final = "prompt_index"

_COLUMNS: Final = (
    "number, id, project, name, title, description, content, tags, arguments, created_at, updated_at, version"
)
#: The snippet has one character more than is shown, which tells whether the text is longer.
_SUMMARY: Final = f"id, name, title, substr(content, 1, {SNIPPET_LENGTH + 1}), tags, created_at, updated_at"
_FULL_SUMMARY: Final = "id, name, title, content, tags, created_at, updated_at"
#: The whole content only for a search.
_ENTRY: Final = f"""id, name, title, description,
    CASE WHEN :query = '' THEN substr(content, 1, {SNIPPET_LENGTH + 1}) ELSE content END,
    tags, json_array_length(arguments), created_at, updated_at"""
#: The ORDER BY clause of each order, and the index that has it.
_ORDERS: Final[dict[PromptOrder, tuple[str, str]]] = {
    "updated": ("updated_at DESC, number DESC", "prompts_by_update"),
    "created": ("number DESC", "prompts_in_order"),
    "name": ("name", "prompts_by_name"),
}
_MATCHES: Final = f"({contains('title', 'folded_title')} OR {contains('content', 'folded_content')})"

_tags: Final = msgspec.json.Decoder(tuple[str, ...])
_arguments: Final = msgspec.json.Decoder(tuple[Argument, ...])


def _read_tags(text: str) -> tuple[str, ...]:
    return () if text == "[]" else _tags.decode(text)


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
        tags=_read_tags(row[7]),
        arguments=_read_arguments(row[8]),
        created_at=row[9],
        updated_at=row[10],
        version=row[11],
    )


def _summary(row: Row, snippet: str) -> PromptSummary:
    return PromptSummary(row[0], row[1], row[2], snippet, _read_tags(row[4]), row[5], row[6])


def _entry(row: Row, query: str) -> PromptEntry:
    return PromptEntry(
        id=row[0],
        name=row[1],
        title=row[2],
        description=row[3],
        snippet=snippet_around(row[4], query),
        tags=_read_tags(row[5]),
        argument_count=row[6],
        created_at=row[7],
        updated_at=row[8],
    )


class PromptTable:
    """See `dittybag.domain.ports.PromptRepository`."""

    def __init__(self, connection: apsw.Connection, pending: PendingIndex) -> None:
        self._connection = connection
        self._pending = pending

    async def by_id(self, project: int, id: str) -> Prompt | None:
        return self._select_one("id = ? AND project = ?", (id, project))

    async def by_name(self, project: int, name: str) -> Prompt | None:
        return self._select_one("project = ? AND name = ?", (project, name))

    async def by_title(self, project: int, title: str) -> Prompt | None:
        return self._select_one("project = ? AND title = ?", (project, title))

    def _select_one(self, condition: str, bindings: tuple[Any, ...]) -> Prompt | None:
        row = first_row(self._connection, f"SELECT {_COLUMNS} FROM prompts WHERE {condition}", bindings)
        return None if row is None else _prompt(row)

    async def name_taken(self, project: int, name: str) -> bool:
        sql = "SELECT 1 FROM prompts WHERE project = ? AND name = ?"
        return value(self._connection, sql, (project, name)) is not None

    async def title_taken(self, project: int, title: str) -> bool:
        sql = "SELECT 1 FROM prompts WHERE project = ? AND title = ?"
        return value(self._connection, sql, (project, title)) is not None

    async def names(self, project: int, limit: int) -> list[str]:
        sql = "SELECT name FROM prompts WHERE project = ? ORDER BY name LIMIT ?"
        return [row[0] for row in all_rows(self._connection, sql, (project, limit))]

    async def listing(self, project: int, after: int, limit: int) -> list[PromptListing]:
        rows = all_rows(
            self._connection,
            """SELECT number, name, title, description, arguments FROM prompts
               WHERE project = ? AND number > ? ORDER BY number LIMIT ?""",
            (project, after, limit),
        )
        return [PromptListing(row[0], row[1], row[2], row[3], _read_arguments(row[4])) for row in rows]

    async def count(self, project: int) -> int:
        return int(value(self._connection, "SELECT count(*) FROM prompts WHERE project = ?", (project,)))

    async def recent(self, project: int, limit: int, offset: int) -> list[PromptSummary]:
        # The index finds the page, so only its rows are read.
        rows = all_rows(
            self._connection,
            f"""SELECT {_SUMMARY} FROM prompts WHERE number IN (
                    SELECT number FROM prompts WHERE project = ?
                    ORDER BY updated_at DESC, number DESC LIMIT ? OFFSET ?)
                ORDER BY updated_at DESC, number DESC""",
            (project, limit, offset),
        )
        return [_summary(row, snippet_start(row[3])) for row in rows]

    async def by_tags(
        self, project: int, tags: Sequence[str], limit: int, offset: int
    ) -> tuple[int, list[PromptSummary]]:
        if not tags:
            return 0, []
        # SQLite reads each tag in index order and merges them.
        single_tag = "SELECT updated_at, prompt FROM prompt_tags WHERE project = ? AND tag = ?"
        tagged_sql = " UNION ".join([single_tag] * len(tags))
        bindings = [binding for tag in tags for binding in (project, tag)]
        total = value(self._connection, f"SELECT count(*) FROM ({tagged_sql})", bindings)
        rows = all_rows(
            self._connection,
            f"""SELECT {_SUMMARY} FROM prompts WHERE number IN (
                    SELECT prompt FROM ({tagged_sql} ORDER BY updated_at DESC, prompt DESC LIMIT ? OFFSET ?))
                ORDER BY updated_at DESC, number DESC""",
            [*bindings, limit, offset],
        )
        return int(total), [_summary(row, snippet_start(row[3])) for row in rows]

    async def existing_tags(self, project: int, tags: Sequence[str]) -> list[str]:
        sql = "SELECT 1 FROM prompt_tags WHERE project = ? AND tag = ? LIMIT 1"
        return [tag for tag in tags if value(self._connection, sql, (project, tag)) is not None]

    async def tags_in_use(self, project: int) -> list[TagCount]:
        sql = """SELECT tag, count(*) AS uses FROM prompt_tags WHERE project = ?
                 GROUP BY tag ORDER BY uses DESC, tag"""
        return [TagCount(*row) for row in all_rows(self._connection, sql, (project,))]

    async def ids_with_tag(self, project: int, tag: str) -> list[str]:
        sql = """SELECT id FROM prompts WHERE number IN (
                     SELECT prompt FROM prompt_tags WHERE project = ? AND tag = ?)
                 ORDER BY number"""
        return [row[0] for row in all_rows(self._connection, sql, (project, tag))]

    async def search(
        self, project: int, query: str, limit: int, offset: int, tags: Sequence[str] = ()
    ) -> tuple[int, list[PromptSummary]]:
        self._pending.write()
        term = SearchTerm(query)
        carried = {f"tag{number}": tag for number, tag in enumerate(tags)}
        tagged_sql = (
            f"""AND number IN (SELECT prompt FROM prompt_tags
                 WHERE project = :project AND tag IN ({", ".join(f":{name}" for name in carried)}))"""
            if tags
            else ""
        )
        rows = all_rows(
            self._connection,
            f"""SELECT number, count(*) OVER () FROM prompts
                WHERE +project = :project {term.candidates(INDEX, TABLE.key)} AND {_MATCHES} {tagged_sql}
                ORDER BY updated_at DESC, number DESC LIMIT :limit OFFSET :offset""",
            {**term.bindings(), **carried, "project": project, "limit": limit, "offset": offset},
        )
        if not rows and offset:
            return (await self.search(project, query, 1, 0, tags))[0], []
        return (rows[0][1] if rows else 0), self._summaries([row[0] for row in rows], query)

    def _summaries(self, numbers: list[int], query: str) -> list[PromptSummary]:
        rows = all_rows(
            self._connection,
            f"""SELECT {_FULL_SUMMARY} FROM prompts WHERE number IN ({",".join("?" * len(numbers))})
                ORDER BY updated_at DESC, number DESC""",
            numbers,
        )
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
        bindings: dict[str, Any] = {"project": project, "most": max_matches, "limit": limit, "offset": offset}
        tagged_sql = self._tagged_sql(project, tags, bindings)
        if query or tags:
            numbers = (
                self._matching_numbers(query, tagged_sql, order, bindings)
                if query
                else self._numbers(tagged_sql, order, "LIMIT :most", bindings)
            )
            total, numbers = len(numbers), numbers[offset : offset + limit]
        else:
            total = await self.count(project)
            numbers = self._numbers("", order, "LIMIT :limit OFFSET :offset", bindings)
        rows = all_rows(
            self._connection,
            f"SELECT {_ENTRY} FROM prompts WHERE number IN ({', '.join(map(str, numbers))})"
            f" ORDER BY {_ORDERS[order][0]}",
            {"query": query},
        )
        return total, [_entry(row, query) for row in rows]

    def _tagged_sql(self, project: int, tags: Sequence[str], bindings: dict[str, Any]) -> str:
        """SQL for the numbers of prompts with all of the tags; empty without tags."""
        if not tags:
            return ""
        count = "SELECT count(*) FROM prompt_tags WHERE project = ? AND tag = ?"
        # Only the prompts of the rarest tag are read.
        ordered = sorted(tags, key=lambda tag: int(value(self._connection, count, (project, tag))))
        bindings |= {f"tag{number}": tag for number, tag in enumerate(ordered)}
        others = "".join(
            f""" AND EXISTS (SELECT 1 FROM prompt_tags WHERE project = :project AND tag = :tag{number}
                 AND updated_at = rarest.updated_at AND prompt = rarest.prompt)"""
            for number in range(1, len(tags))
        )
        return f"SELECT prompt FROM prompt_tags AS rarest WHERE project = :project AND tag = :tag0{others}"

    def _matching_numbers(
        self, query: str, tagged_sql: str, order: PromptOrder, bindings: dict[str, Any]
    ) -> list[int]:
        """Return the numbers of the first prompts that contain the query."""
        self._pending.write()
        term = SearchTerm(query)
        wanted = {**bindings, **term.bindings()}
        if term.match is None and order != "created":
            # Without trigrams every text is compared, which is fastest in storage order.
            numbers = self._numbers(tagged_sql, "created", "LIMIT :most", wanted, matches=_MATCHES)
            if len(numbers) < bindings["most"]:
                return self._sort_numbers(numbers, order)
        # In index order, so that the search stops after enough matches.
        candidates = term.candidates(INDEX, "+" + TABLE.key).removeprefix("AND ") or "1"
        return self._numbers(
            tagged_sql, order, "LIMIT :most", wanted, candidates=candidates, matches=_MATCHES
        )

    def _numbers(
        self,
        tagged_sql: str,
        order: PromptOrder,
        pages: str,
        bindings: dict[str, Any],
        *,
        candidates: str = "1",
        matches: str = "1",
    ) -> list[int]:
        by, index = _ORDERS[order]
        among = f"+number IN ({tagged_sql})" if tagged_sql else "1"
        # CASE fixes the order of evaluation: texts are compared last.
        sql = f"""SELECT number FROM prompts INDEXED BY {index} WHERE project = :project
                  AND CASE WHEN {among} AND {candidates} THEN {matches} ELSE 0 END ORDER BY {by} {pages}"""
        return [row[0] for row in all_rows(self._connection, sql, bindings)]

    def _sort_numbers(self, numbers: list[int], order: PromptOrder) -> list[int]:
        listed = ", ".join(map(str, numbers))
        sql = f"SELECT number FROM prompts WHERE number IN ({listed}) ORDER BY {_ORDERS[order][0]}"
        return [row[0] for row in all_rows(self._connection, sql)]

    async def in_project(self, project: int) -> list[Prompt]:
        sql = f"SELECT {_COLUMNS} FROM prompts WHERE project = ? ORDER BY number"
        return [_prompt(row) for row in all_rows(self._connection, sql, (project,))]


def select(connection: apsw.Connection, clauses: str, bindings: Bindings) -> list[Prompt]:
    """Return the prompts of any project that a query with these clauses finds."""
    return [
        _prompt(row) for row in all_rows(connection, f"SELECT {_COLUMNS} FROM prompts {clauses}", bindings)
    ]


def row_values(connection: apsw.Connection, prompt: Prompt) -> dict[str, Any]:
    return {
        **msgspec.structs.asdict(prompt),
        "tags": msgspec.json.encode(prompt.tags).decode() if prompt.tags else "[]",
        "arguments": msgspec.json.encode(prompt.arguments).decode() if prompt.arguments else "[]",
        "folded_title": folded_or_none(prompt.title),
        "folded_content": folded_or_none(prompt.content),
    }


def index_text(connection: apsw.Connection, prompt: Prompt) -> str:
    return fold(f"{prompt.title}\n{prompt.content}")
