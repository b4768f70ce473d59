"""Search for prompts in PostgreSQL by text and tags.

A first step finds all matches by an index on texts or tags and materialises them. Without it, the planner
sometimes expects that reading prompts in the order of the result finds a page sooner, and reads all of them.
"""

from __future__ import annotations

from typing import Final

from dittybag.domain.queries import PromptQuery
from dittybag.storage.postgres.postgres_driver import PostgresDriver, is_storable
from dittybag.storage.postgres.postgres_text_search import contains, has_trigram, pattern
from dittybag.storage.postgres.row_security import RowSecurity
from dittybag.storage.sql.prompt_table import PROMPT_ORDERS
from dittybag.storage.sql.sql_driver import Bindings

#: The number of prompts that are compared one by one, in the order of the result, before an index is used.
_TRIED: Final = 2000
#: Up to one match in this many prompts, comparing prompts one by one is faster than the index.
_SPARSE: Final = 20
#: How many more prompts are compared than should suffice.
_MARGIN: Final = 1.5


class PromptSearch:
    """Finds the numbers of prompts.

    All statements see all rows, because a policy would keep PostgreSQL from using an index, and check
    themselves that the viewer can see the project.
    """

    def __init__(self, driver: PostgresDriver, row_security: RowSecurity) -> None:
        self._driver = driver
        self._row_security = row_security

    async def find(self, query: PromptQuery) -> tuple[int, list[int]]:
        """Count the matching prompts; return the numbers of a page of them."""
        if not _is_storable(query):
            return 0, []
        async with self._row_security.as_indexed_operator():
            tag = _only_tag(query)
            return await self._find_all(query) if tag is None else await self._find_tagged(query, tag)

    async def _find_tagged(self, query: PromptQuery, tag: str) -> tuple[int, list[int]]:
        """Find the prompts with one tag, whose number is kept."""
        bindings = Bindings(query.project, tag)
        allowed = self._row_security.project_condition(query.project, bindings)
        row = await self._driver.row(
            f"""SELECT count, (SELECT count FROM prompt_counts WHERE project = $1) FROM tag_counts
                WHERE project = $1 AND tag = $2 AND {allowed}""",
            *bindings.values,
        )
        if row is None:
            return 0, []
        total, prompts = row
        tried = int((query.offset + query.limit) * prompts / total * _MARGIN)
        if prompts < total * _SPARSE and tried < prompts:
            _, numbers = await self._try(query, tried)
            page = _page(query, numbers)
            if len(page) == query.limit:
                return total, page
        return total, (await self._find_all(query))[1]

    async def find_first(self, query: PromptQuery, most: int) -> tuple[int, list[int]]:
        """Count the matching prompts, at most `most`; return the numbers of a page of the first of them."""
        if not _is_storable(query):
            return 0, []
        async with self._row_security.as_indexed_operator():
            tried, numbers = await self._try(query, _TRIED)
            if tried < _TRIED or len(numbers) >= most:
                return min(len(numbers), most), _page(query, numbers[:most])
            if len(numbers) * _SPARSE >= tried:
                # Matches are frequent.
                tried, all_numbers = await self._try(query, int(most * tried / len(numbers) * _MARGIN))
                if len(all_numbers) >= most:
                    return most, _page(query, all_numbers[:most])
            total, page = await self._find_all(query, most)
            if total < most:
                return total, page
            if query.offset + query.limit <= len(numbers):
                return most, _page(query, numbers)
            _, page = await self._find_all(query)
            return most, page[: max(most - query.offset, 0)]

    async def _try(self, query: PromptQuery, most: int) -> tuple[int, list[int]]:
        """Compare the first prompts in the order of the query. Returns how many, and the matching ones."""
        bindings = Bindings(most)
        matches = _matches(query, bindings)
        allowed = self._row_security.project_condition(query.project, bindings)
        order = f"ORDER BY {PROMPT_ORDERS[query.order]}"
        row = await self._driver.row(
            f"""WITH tried AS MATERIALIZED (
                    SELECT number, updated_at, name, {matches} AS matches FROM prompts
                    WHERE {_in_project(query)} AND {allowed} {order} LIMIT $1)
                SELECT (SELECT count(*) FROM tried), ARRAY(SELECT number FROM tried WHERE matches {order})""",
            *bindings.values,
        )
        assert row is not None
        return row[0], row[1]

    async def _find_all(self, query: PromptQuery, most: int | None = None) -> tuple[int, list[int]]:
        """Find the matches by an index, at most `most` of them, which are then any of all."""
        bindings = Bindings()
        matches = _matches(query, bindings)
        if query.text and not has_trigram(query.text):
            # Keeps PostgreSQL from reading the whole trigram index, which is slowest.
            matches += " IS TRUE"
        allowed = self._row_security.project_condition(query.project, bindings)
        end = "" if most is None else f"LIMIT {bindings.add(most)}"
        page = bindings.page(query.limit, query.offset)
        row = await self._driver.row(
            f"""WITH found AS MATERIALIZED (
                    SELECT number, updated_at, name FROM prompts
                    WHERE {_in_project(query)} AND {matches} AND {allowed} {end})
                SELECT (SELECT count(*) FROM found),
                       ARRAY(SELECT number FROM found ORDER BY {PROMPT_ORDERS[query.order]} {page})""",
            *bindings.values,
        )
        assert row is not None
        return row[0], row[1]


def _is_storable(query: PromptQuery) -> bool:
    return all(map(is_storable, (query.text, *query.all_tags)))


def _only_tag(query: PromptQuery) -> str | None:
    """Return the tag of a query that has no other condition."""
    tags = query.any_tag + query.all_tags
    return tags[0] if len(tags) == 1 and not query.text else None


def _page(query: PromptQuery, numbers: list[int]) -> list[int]:
    return numbers[query.offset : query.offset + query.limit]


def _in_project(query: PromptQuery) -> str:
    # Not a placeholder: a plan for all projects would not consider how many prompts this one has.
    return f"project = {int(query.project)}"


def _matches(query: PromptQuery, bindings: Bindings) -> str:
    """SQL for whether a prompt of the project matches."""
    conditions = []
    if query.any_tag:
        tags = bindings.add([tag for tag in query.any_tag if is_storable(tag)])
        conditions.append(f"tags && {tags}")
    if query.all_tags:
        conditions.append(f"tags @> {bindings.add(list(query.all_tags))}")
    if query.text:
        wanted = bindings.add(pattern(query.text))
        conditions.append(f"({contains('title', wanted)} OR {contains('content', wanted)})")
    return f"({' AND '.join(conditions)})"
