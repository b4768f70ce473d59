"""Prompts in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import apsw
import msgspec

from dittybag.domain.prompts import (
    Argument,
    Prompt,
    PromptListing,
    PromptOrder,
    PromptSummary,
    TagCount,
)
from dittybag.domain.queries import PromptQuery
from dittybag.domain.text import SNIPPET_LENGTH, fold, snippet_around
from dittybag.storage.sqlite.row_writes import KeyedTable
from dittybag.storage.sqlite.rows import Bindings, Row, all_rows, first_row, value
from dittybag.storage.sqlite.text_search import PendingIndex, SearchTerm, contains, folded_or_none

TABLE: Final = KeyedTable("prompts", "number")
INDEX: Final = "prompt_index"

_COLUMNS: Final = (
    "number, id, project, name, title, description, content, tags, arguments, created_at, updated_at, version"
)
#: The whole content only for a search. Otherwise, one character more than is shown tells whether the text is
#: longer.
_SUMMARY: Final = f"""id, name, title, description,
    CASE WHEN :text = '' THEN substr(content, 1, {SNIPPET_LENGTH + 1}) ELSE content END,
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


def _summary(row: Row, text: str) -> PromptSummary:
    return PromptSummary(
        id=row[0],
        name=row[1],
        title=row[2],
        description=row[3],
        snippet=snippet_around(row[4], text),
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

    async def page(self, query: PromptQuery) -> tuple[int, list[PromptSummary]]:
        total, numbers = self._find(query)
        rows = all_rows(
            self._connection,
            f"SELECT {_SUMMARY} FROM prompts WHERE number IN ({', '.join(map(str, numbers))})"
            f" ORDER BY {_ORDERS[query.order][0]}",
            {"text": query.text},
        )
        return total, [_summary(row, query.text) for row in rows]

    def _find(self, query: PromptQuery) -> tuple[int, list[int]]:
        """Count the matching prompts; return the numbers of a page of them."""
        bindings: dict[str, Any] = {
            "project": query.project,
            "most": query.max_matches,
            "limit": query.limit,
            "offset": query.offset,
        }
        tagged_sql = self._tagged_sql(query, bindings)
        if not (query.text or tagged_sql):
            sql = "SELECT count(*) FROM prompts WHERE project = ?"
            total = value(self._connection, sql, (query.project,))
            return total, self._numbers("", query.order, "LIMIT :limit OFFSET :offset", bindings)
        if query.max_matches is None:
            return self._all_matches(query, tagged_sql, bindings)
        numbers = (
            self._matching_numbers(query.text, tagged_sql, query.order, bindings)
            if query.text
            else self._numbers(tagged_sql, query.order, "LIMIT :most", bindings)
        )
        return len(numbers), numbers[query.offset : query.offset + query.limit]

    def _all_matches(
        self, query: PromptQuery, tagged_sql: str, bindings: dict[str, Any]
    ) -> tuple[int, list[int]]:
        if query.text:
            self._pending.write()
            term = SearchTerm(query.text)
            bindings |= term.bindings()
            tagged = f"AND number IN (SELECT prompt FROM ({tagged_sql}))" if tagged_sql else ""
            source = f"""prompts WHERE +project = :project
                         {term.candidates(INDEX, TABLE.key)} AND {_MATCHES} {tagged}"""
        elif query.order == "updated":
            # SQLite reads each tag in index order, without the rows of the prompts.
            source = f"(SELECT updated_at, prompt AS number FROM ({tagged_sql}))"
        else:
            source = f"prompts WHERE number IN (SELECT prompt FROM ({tagged_sql}))"
        # A search counts while it compares texts; an index counts tags.
        count = "count(*) OVER ()" if query.text else f"(SELECT count(*) FROM {source})"
        page = f"ORDER BY {_ORDERS[query.order][0]} LIMIT :limit OFFSET :offset"
        rows = all_rows(self._connection, f"SELECT number, {count} FROM {source} {page}", bindings)
        if not rows:
            return int(value(self._connection, f"SELECT count(*) FROM {source}", bindings)), []
        return rows[0][1], [row[0] for row in rows]

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

    def _tagged_sql(self, query: PromptQuery, bindings: dict[str, Any]) -> str:
        """SQL for the times and numbers of prompts with any of some tags and all of others; empty without."""
        tagged = "SELECT updated_at, prompt FROM prompt_tags AS first WHERE project = :project AND tag ="
        bindings |= {f"any{number}": tag for number, tag in enumerate(query.any_tag)}
        with_any = " UNION ".join(f"{tagged} :any{number}" for number in range(len(query.any_tag)))
        with_all = f"{tagged} {self._all_tags_sql(query, bindings)}" if query.all_tags else ""
        if with_any and with_all:
            return f"SELECT updated_at, prompt FROM ({with_any}) INTERSECT {with_all}"
        return with_any or with_all

    def _all_tags_sql(self, query: PromptQuery, bindings: dict[str, Any]) -> str:
        count = "SELECT count(*) FROM prompt_tags WHERE project = ? AND tag = ?"
        # Only the prompts of the rarest tag are read.
        rarest, *others = sorted(
            query.all_tags, key=lambda tag: int(value(self._connection, count, (query.project, tag)))
        )
        bindings |= {"rarest": rarest, **{f"all{number}": tag for number, tag in enumerate(others)}}
        return ":rarest" + "".join(
            f""" AND EXISTS (SELECT 1 FROM prompt_tags WHERE project = :project AND tag = :all{number}
                 AND updated_at = first.updated_at AND prompt = first.prompt)"""
            for number in range(len(others))
        )

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
        among = f"+number IN (SELECT prompt FROM ({tagged_sql}))" if tagged_sql else "1"
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
