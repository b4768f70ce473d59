"""Search for prompts in PostgreSQL by text and tags.

A first step finds all matches by an index on texts or tags and materialises them. Without it, the planner
sometimes expects that reading prompts in the order of the result finds a page sooner, and reads all of them.
"""

from __future__ import annotations

from typing import Final

from dittybag.domain.prompts import PromptOrder
from dittybag.domain.queries import PromptQuery
from dittybag.storage.postgres.postgres_driver import PostgresDriver, is_storable
from dittybag.storage.postgres.postgres_text_search import contains, has_trigram, pattern
from dittybag.storage.postgres.row_security import COMPARING, RowSecurity
from dittybag.storage.sql.prompt_table import PROMPT_COUNT, PROMPT_ORDERS
from dittybag.storage.sql.sql_driver import Bindings

#: The number of prompts that are compared to see how frequent matches are.
_SAMPLE: Final = 200
#: To compare a prompt takes this many times as long as to find one by an index.
_COMPARING: Final = 2
#: The index finds up to this many times as many matches as are counted, because they are sorted afterwards.
_MORE: Final = 4
#: How many more prompts are compared than should suffice.
_MARGIN: Final = 1.4


class PromptSearch:
    """Finds the numbers of prompts.

    In every statement, $1 is the project. All statements see all rows, because a policy would keep PostgreSQL
    from using an index, and check themselves that the viewer can see the project.
    """

    def __init__(self, driver: PostgresDriver, row_security: RowSecurity) -> None:
        self._driver = driver
        self._row_security = row_security

    async def find(self, query: PromptQuery) -> tuple[int, list[int]]:
        """Count the matching prompts; return the numbers of a page of them."""
        if not _is_storable(query):
            return 0, []
        async with self._row_security.as_indexed_operator(COMPARING):
            tag = _only_tag(query)
            return await self._find_all(query) if tag is None else await self._find_tagged(query, tag)

    async def _find_tagged(self, query: PromptQuery, tag: str) -> tuple[int, list[int]]:
        """Find the prompts with one tag, whose number is kept."""
        bindings = Bindings(query.project, tag)
        allowed = self._row_security.project_condition("$1", bindings)
        sql = f"SELECT count FROM tag_counts WHERE project = $1 AND tag = $2 AND {allowed}"
        total = await self._driver.value(sql, *bindings.values) or 0
        prompts = await self._count_prompts(query)
        page = await self._frequent_page(query, total, prompts) if total else []
        return total, (await self._find_all(query))[1] if page is None else page

    async def find_first(self, query: PromptQuery, most: int) -> tuple[int, list[int]]:
        """Count the matching prompts, at most `most`; return the numbers of a page of the first of them."""
        if not _is_storable(query):
            return 0, []
        async with self._row_security.as_indexed_operator(COMPARING):
            tried, numbers = await self._compare(query, _SAMPLE, query.order)
            if tried < _SAMPLE:
                return min(len(numbers), most), _page(query, numbers[:most])
            prompts = await self._count_prompts(query)
            share = len(numbers) / tried
            matches = int(share * prompts)
            if not await self._has_frequent(query, most, share, prompts):
                # Not limited if all of them are needed to sort them.
                is_limited = matches < most * _MORE or _compared(query, matches, prompts) is not None
                limit = most * _MORE if is_limited else None
                total, page = await self._find_all(query, limit)
                if limit is None or total < limit:
                    return min(total, most), page[: max(most - query.offset, 0)]
            found = await self._frequent_page(query, matches, prompts)
            page = (await self._find_all(query))[1] if found is None else found
            return most, page[: max(most - query.offset, 0)]

    async def _count_prompts(self, query: PromptQuery) -> int:
        """Return how many prompts the project has."""
        return int(await self._driver.value(f"SELECT {PROMPT_COUNT}", query.project))

    async def _has_frequent(self, query: PromptQuery, most: int, share: float, prompts: int) -> bool:
        """Whether there are at least `most` matches, if comparing texts tells it sooner than the index.

        `share`: what part of the prompts probably matches.
        """
        # The index reads all matches.
        if not share or most / share * _COMPARING > share * prompts:
            return False
        _, numbers = await self._compare(query, int(most / share * _MARGIN), "created")
        return len(numbers) >= most

    async def _frequent_page(self, query: PromptQuery, matches: int, prompts: int) -> list[int] | None:
        """Return a page if comparing texts in the order of the query finds it sooner than the index.

        `matches`: the probable number of all matches.
        """
        compared = _compared(query, matches, prompts)
        if compared is None:
            return None
        _, numbers = await self._compare(query, compared, query.order)
        return _page(query, numbers) if len(numbers) >= query.offset + query.limit else None

    async def _compare(self, query: PromptQuery, most: int, order: PromptOrder) -> tuple[int, list[int]]:
        """Compare the first prompts in an order one by one. Returns how many, and the matching ones."""
        bindings = Bindings(query.project, most)
        matches = _matches(query, bindings)
        allowed = self._row_security.project_condition("$1", bindings)
        sorted_by = f"ORDER BY {PROMPT_ORDERS[order]}"
        row = await self._driver.row(
            f"""WITH compared AS MATERIALIZED (
                    SELECT number, updated_at, name, {matches} AS matches FROM prompts
                    WHERE project = $1 AND {allowed} {sorted_by} LIMIT $2)
                SELECT (SELECT count(*) FROM compared),
                       ARRAY(SELECT number FROM compared WHERE matches {sorted_by})""",
            *bindings.values,
        )
        assert row is not None
        return row[0], row[1]

    async def _find_all(self, query: PromptQuery, most: int | None = None) -> tuple[int, list[int]]:
        """Find the matches by an index, at most `most` of them, which are then any of all."""
        bindings = Bindings(query.project)
        matches = _matches(query, bindings)
        if query.text and not has_trigram(query.text):
            # Keeps PostgreSQL from reading the whole trigram index, which is slowest.
            matches += " IS TRUE"
        allowed = self._row_security.project_condition("$1", bindings)
        end = "" if most is None else f"LIMIT {bindings.add(most)}"
        page = bindings.page(query.limit, query.offset)
        row = await self._driver.row(
            f"""WITH found AS MATERIALIZED (
                    SELECT number, updated_at, name FROM prompts
                    WHERE project = $1 AND {matches} AND {allowed} {end})
                SELECT (SELECT count(*) FROM found),
                       ARRAY(SELECT number FROM found ORDER BY {PROMPT_ORDERS[query.order]} {page})""",
            *bindings.values,
        )
        assert row is not None
        return row[0], row[1]


def _compared(query: PromptQuery, matches: int, prompts: int) -> int | None:
    """Return how many prompts to compare for a page; `None` if the index finds all matches sooner."""
    compared = int((query.offset + query.limit) * prompts / matches * _MARGIN) if matches else prompts
    return None if compared * _COMPARING > matches else compared


def _is_storable(query: PromptQuery) -> bool:
    return all(map(is_storable, (query.text, *query.all_tags)))


def _only_tag(query: PromptQuery) -> str | None:
    """Return the tag of a query that has no other condition."""
    tags = query.any_tag + query.all_tags
    return tags[0] if len(tags) == 1 and not query.text else None


def _page(query: PromptQuery, numbers: list[int]) -> list[int]:
    return numbers[query.offset : query.offset + query.limit]


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
