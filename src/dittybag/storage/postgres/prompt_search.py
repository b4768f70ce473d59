"""Search for prompts in PostgreSQL by text and tags."""

from __future__ import annotations

import re
from typing import Final

from dittybag.domain.queries import PromptQuery
from dittybag.storage.postgres.postgres_driver import PostgresDriver, is_storable
from dittybag.storage.postgres.row_security import RowSecurity
from dittybag.storage.postgres.text_search import contains, pattern
from dittybag.storage.sql.prompt_table import PROMPT_ORDERS
from dittybag.storage.sql.sql_driver import Bindings

#: A query without such a sequence cannot use the trigram index.
_TRIGRAM: Final = re.compile(r"[^\W_]{3}")


class PromptSearch:
    """Finds the numbers of prompts."""

    def __init__(self, driver: PostgresDriver, row_security: RowSecurity) -> None:
        self._driver = driver
        self._row_security = row_security

    async def find(self, query: PromptQuery) -> tuple[int, list[int]]:
        """Count the matching prompts; return the numbers of a page of them."""
        if not all(map(is_storable, (query.text, *query.all_tags))):
            return 0, []
        if not (query.text or query.any_tag or query.all_tags):
            return await self._all(query)
        condition, bindings = _matching(query)
        if query.max_matches is None:
            return await self._all_matches(query, condition, bindings)
        numbers = await self._first_matches(query, condition, bindings, query.max_matches)
        return len(numbers), numbers[query.offset : query.offset + query.limit]

    async def _all(self, query: PromptQuery) -> tuple[int, list[int]]:
        page = f"WHERE project = $1 ORDER BY {PROMPT_ORDERS[query.order]} LIMIT $2 OFFSET $3"
        sql = f"SELECT number FROM prompts {page}"
        if query.order == "name":
            # The index contains the name, so the rows of earlier pages are not read.
            names = f"ARRAY(SELECT name FROM prompts {page})"
            sql = f"SELECT number FROM prompts WHERE project = $1 AND name = ANY({names})"
        rows = await self._driver.rows(sql, query.project, query.limit, query.offset)
        total = await self._driver.value("SELECT count(*) FROM prompts WHERE project = $1", query.project)
        return total, [row[0] for row in rows]

    async def _all_matches(
        self, query: PromptQuery, condition: str, bindings: Bindings
    ) -> tuple[int, list[int]]:
        condition, bindings = await self._row_security.indexed_condition("prompts", condition, bindings)
        filters = list(bindings.values)
        rows = await self._driver.rows(
            f"""SELECT number, count(*) OVER () FROM prompts WHERE {condition}
                ORDER BY {PROMPT_ORDERS[query.order]} {bindings.page(query.limit, query.offset)}""",
            *bindings.values,
        )
        if not rows:
            return await self._driver.value(f"SELECT count(*) FROM prompts WHERE {condition}", *filters), []
        return rows[0][1], [row[0] for row in rows]

    async def _first_matches(
        self, query: PromptQuery, condition: str, bindings: Bindings, limit: int
    ) -> list[int]:
        order = f"ORDER BY {PROMPT_ORDERS[query.order]}"
        most = f"LIMIT {bindings.add(limit)}"
        sql = f"SELECT number FROM prompts WHERE {condition}"
        # Few matches are found fastest without an order, many with it.
        rows = await self._driver.rows(f"{sql} {most}", *bindings.values)
        if len(rows) == limit:
            rows = await self._driver.rows(f"{sql} {order} {most}", *bindings.values)
        elif rows:
            sql = f"SELECT number FROM prompts WHERE number = ANY($1) {order}"
            rows = await self._driver.rows(sql, [row[0] for row in rows])
        return [row[0] for row in rows]


def _matching(query: PromptQuery) -> tuple[str, Bindings]:
    """Return the SQL condition of a query."""
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
