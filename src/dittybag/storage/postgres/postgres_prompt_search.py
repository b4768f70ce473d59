"""Search for prompts in PostgreSQL by text and tags."""

from __future__ import annotations

import re
from typing import Final

from dittybag.domain.queries import PromptQuery
from dittybag.storage.postgres.postgres_driver import PostgresDriver, is_storable
from dittybag.storage.postgres.postgres_text_search import contains, pattern
from dittybag.storage.postgres.row_security import RowSecurity
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
        if not _is_storable(query):
            return 0, []
        condition, bindings = await self._row_security.indexed_condition("prompts", *_matching(query))
        filters = list(bindings.values)
        rows = await self._driver.rows(
            f"""SELECT number, count(*) OVER () FROM prompts WHERE {condition}
                ORDER BY {PROMPT_ORDERS[query.order]} {bindings.page(query.limit, query.offset)}""",
            *bindings.values,
        )
        if not rows:
            return await self._driver.value(f"SELECT count(*) FROM prompts WHERE {condition}", *filters), []
        return rows[0][1], [row[0] for row in rows]

    async def find_first(self, query: PromptQuery, limit: int) -> list[int]:
        """Return the numbers of the first matches in the order of the query."""
        if not _is_storable(query):
            return []
        condition, bindings = _matching(query)
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


def _is_storable(query: PromptQuery) -> bool:
    return all(map(is_storable, (query.text, *query.all_tags)))


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
