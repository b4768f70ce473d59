"""Search for prompts in SQLite by text and tags."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dittybag.domain.prompts import PromptOrder
from dittybag.domain.queries import PromptQuery
from dittybag.domain.text import fold
from dittybag.storage.sql.prompt_table import PROMPT_ORDERS
from dittybag.storage.sql.sql_driver import Bindings
from dittybag.storage.sqlite.sqlite_driver import SqliteDriver
from dittybag.storage.sqlite.sqlite_text_search import (
    Contains,
    PendingIndex,
    candidates,
    text_match,
)

#: The index that has the prompts of a project in each order.
_INDEXES: Final[dict[PromptOrder, str]] = {
    "updated": "prompts_by_update",
    "created": "prompts_in_order",
    "name": "prompts_by_name",
}

#: The number of prompts with a tag, which is kept.
_TAG_COUNT: Final = "SELECT count FROM tag_counts WHERE project = $1 AND tag = $2"

#: With fewer candidates, comparing all of them is faster than reading prompts in order until enough match.
_MAX_CANDIDATES: Final = 4000
#: A text is frequent if one in this many of the first prompts in order has it.
_FREQUENT: Final = 5
_PROBED: Final = 500


class PromptSearch:
    """Finds the numbers of prompts. In every statement, $1 is the project."""

    def __init__(self, driver: SqliteDriver, pending: PendingIndex) -> None:
        self._driver = driver
        self._pending = pending

    async def find(self, query: PromptQuery) -> tuple[int, list[int]]:
        """Count the matching prompts; return the numbers of a page of them."""
        bindings = Bindings(query.project)
        tagged = await self._tagged_sql(query, bindings)
        if not query.text:
            total = await self._count_tagged(query, tagged, bindings)
            return total, await self._page_tagged(query, tagged, bindings)
        self._pending.write()
        candidate = candidates("prompt", text_match(query.text), bindings)
        source = f"prompts WHERE +project = $1 AND {candidate} AND {_matches(query.text, bindings)}"
        if tagged:
            source += f" AND number IN (SELECT prompt FROM ({tagged}))"
        filters = list(bindings.values)
        page = f"ORDER BY {PROMPT_ORDERS[query.order]} {bindings.page(query.limit, query.offset)}"
        sql = f"SELECT number, count(*) OVER () FROM {source} {page}"
        rows = await self._driver.rows(sql, *bindings.values)
        if not rows:
            return await self._driver.value(f"SELECT count(*) FROM {source}", *filters), []
        return rows[0][1], [row[0] for row in rows]

    async def _count_tagged(self, query: PromptQuery, tagged: str, bindings: Bindings) -> int:
        if len(tags := query.any_tag + query.all_tags) == 1:
            return await self._driver.value(_TAG_COUNT, query.project, tags[0]) or 0
        return int(await self._driver.value(f"SELECT count(*) FROM ({tagged})", *bindings.values))

    async def _page_tagged(self, query: PromptQuery, tagged: str, bindings: Bindings) -> list[int]:
        page = bindings.page(query.limit, query.offset)
        # SQLite reads each tag in index order, without the rows of the prompts.
        sql = f"SELECT prompt FROM ({tagged} ORDER BY updated_at DESC, prompt DESC {page})"
        if query.order != "updated":
            sql = f"""SELECT number FROM prompts WHERE number IN (SELECT prompt FROM ({tagged}))
                      ORDER BY {PROMPT_ORDERS[query.order]} {page}"""
        return [row[0] for row in await self._driver.rows(sql, *bindings.values)]

    async def find_first(self, query: PromptQuery, limit: int) -> list[int]:
        """Return the numbers of the first matches in the order of the query."""
        query = replace(query, limit=limit, offset=0)
        if not query.text:
            bindings = Bindings(query.project)
            return await self._page_tagged(query, await self._tagged_sql(query, bindings), bindings)
        self._pending.write()
        match = text_match(query.text)
        if match is None:
            return await self._first_by_scan(query)
        if await self._has_few_candidates(match):
            return (await self.find(query))[1]
        is_frequent = await self._is_frequent(query)
        return await self._in_index_order(query, query.order, None if is_frequent else match)

    async def _first_by_scan(self, query: PromptQuery) -> list[int]:
        """Return the first matches without the index. Comparing every text is fastest in storage order."""
        if query.order != "created":
            numbers = await self._in_index_order(query, "created", None)
            if len(numbers) < query.limit:
                sql = f"""SELECT number FROM prompts WHERE {self._driver.any_of("number", "$1")}
                          ORDER BY {PROMPT_ORDERS[query.order]}"""
                return [row[0] for row in await self._driver.rows(sql, self._driver.list_value(numbers))]
        return await self._in_index_order(query, query.order, None)

    async def _has_few_candidates(self, match: str) -> bool:
        sql = "SELECT count(*) FROM (SELECT 1 FROM prompt_index WHERE prompt_index MATCH $1 LIMIT $2)"
        return int(await self._driver.value(sql, match, _MAX_CANDIDATES + 1)) <= _MAX_CANDIDATES

    async def _is_frequent(self, query: PromptQuery) -> bool:
        """Whether a large part of the first prompts matches. Then collecting all candidates takes longer."""
        bindings = Bindings(query.project)
        matches = _matches(query.text, bindings)
        first = f"""SELECT title, folded_title, content, folded_content FROM prompts
                    INDEXED BY {_INDEXES[query.order]} WHERE project = $1
                    ORDER BY {PROMPT_ORDERS[query.order]} {bindings.page(_PROBED)}"""
        found = await self._driver.value(f"SELECT sum({matches}) FROM ({first})", *bindings.values)
        return (found or 0) * _FREQUENT >= _PROBED

    async def _in_index_order(self, query: PromptQuery, order: PromptOrder, match: str | None) -> list[int]:
        """Return the numbers of matches in the order of an index, so that the search stops after enough.

        `match`: to compare only candidates of the index of trigrams.
        """
        bindings = Bindings(query.project)
        tagged = await self._tagged_sql(query, bindings)
        among = f"+number IN (SELECT prompt FROM ({tagged}))" if tagged else "true"
        candidate = candidates("prompt", match, bindings, hint="+")
        matches = _matches(query.text, bindings)
        # CASE fixes the order of evaluation: texts are compared last.
        sql = f"""SELECT number FROM prompts INDEXED BY {_INDEXES[order]} WHERE project = $1
                  AND CASE WHEN {among} AND {candidate} THEN {matches} ELSE false END
                  ORDER BY {PROMPT_ORDERS[order]} {bindings.page(query.limit)}"""
        return [row[0] for row in await self._driver.rows(sql, *bindings.values)]

    async def _tagged_sql(self, query: PromptQuery, bindings: Bindings) -> str:
        """SQL for the times and numbers of prompts with any of some tags and all of others; empty without."""
        tagged = "SELECT updated_at, prompt FROM prompt_tags AS tagged WHERE project = $1 AND tag ="
        with_any = " UNION ".join(f"{tagged} {bindings.add(tag)}" for tag in query.any_tag)
        if not query.all_tags:
            return with_any
        counts = {
            tag: await self._driver.value(_TAG_COUNT, query.project, tag) or 0 for tag in query.all_tags
        }
        # Only the prompts of the rarest tag are read.
        rarest, *others = sorted(query.all_tags, key=counts.__getitem__)
        with_all = f"{tagged} {bindings.add(rarest)}" + "".join(
            f""" AND EXISTS (SELECT 1 FROM prompt_tags WHERE project = $1 AND tag = {bindings.add(tag)}
                 AND updated_at = tagged.updated_at AND prompt = tagged.prompt)"""
            for tag in others
        )
        return f"SELECT updated_at, prompt FROM ({with_any}) INTERSECT {with_all}" if with_any else with_all


def _matches(text: str, bindings: Bindings) -> str:
    contains = Contains(fold(text), bindings)
    return f"({contains.in_column('title')} OR {contains.in_column('content')})"
