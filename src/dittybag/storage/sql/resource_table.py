"""Resources. Their contents are in a separate table."""

from __future__ import annotations

from typing import Final

from dittybag.domain.queries import ResourceOrder, ResourceQuery
from dittybag.domain.resources import Resource
from dittybag.domain.text import fold, snippet_around, snippet_start
from dittybag.storage.sql.content_table import ContentTable
from dittybag.storage.sql.entity_rows import EntityRows, columns_sql
from dittybag.storage.sql.native_queries import NativeQueries
from dittybag.storage.sql.sql_driver import (
    Bindings,
    SqlDriver,
    ascii_lower,
    contains_pattern,
    escape_like,
)

_ORDERS: Final[dict[ResourceOrder, str]] = {
    "updated": "updated_at DESC, number DESC",
    "name": "name",
    "size": "size DESC, number DESC",
    "type": "mime_type, name",
}


class ResourceTable:
    """See `dittybag.domain.ports.ResourceRepository`."""

    def __init__(
        self, driver: SqlDriver, rows: EntityRows, native: NativeQueries, contents: ContentTable
    ) -> None:
        self._driver = driver
        self._rows = rows
        self._native = native
        self._contents = contents

    async def by_name(self, project: int, name: str) -> Resource | None:
        found: Resource | None = await self._rows.select_one("project = $1 AND name = $2", project, name)
        return found

    async def by_uri(self, project: int, uri: str) -> Resource | None:
        bindings = Bindings(project)
        condition = f"project = $1 AND {self._native.has_uri(uri, bindings)}"
        found: Resource | None = await self._rows.select_one(condition, *bindings.values)
        return found

    async def listing(
        self, project: int, *, after: int = 0, limit: int | None = None, templates: bool | None = None
    ) -> list[Resource]:
        bindings = Bindings(project, after)
        kind = "" if templates is None else f"AND is_template = {bindings.add(templates)}"
        clauses = f"WHERE project = $1 AND number > $2 {kind} ORDER BY number {bindings.page(limit)}"
        return await self._rows.select(clauses, *bindings.values)

    async def uris(self, project: int, prefix: str, limit: int) -> list[str]:
        sql = """SELECT uri FROM resources
                 WHERE project = $1 AND NOT is_template AND lower(uri) LIKE $2 ESCAPE '\\'
                 ORDER BY uri LIMIT $3"""
        pattern = escape_like(ascii_lower(prefix)) + "%"
        return [row[0] for row in await self._driver.rows(sql, project, pattern, limit)]

    async def types(self, project: int, limit: int) -> list[tuple[str, int]]:
        sql = """SELECT mime_type, count(*) FROM resources WHERE project = $1
                 GROUP BY mime_type ORDER BY count(*) DESC, mime_type LIMIT $2"""
        return [(row[0], row[1]) for row in await self._driver.rows(sql, project, limit)]

    async def page(self, query: ResourceQuery) -> tuple[int, list[Resource]]:
        condition, bindings = _filtered(query)
        if query.text:
            # A URI is compared like a name, because it often ends with the name.
            plain = f"LIKE {bindings.add(contains_pattern(ascii_lower(query.text)))} ESCAPE '\\'"
            title = self._native.column_condition("title", query.text, bindings)
            condition += f" AND (lower(name) {plain} OR lower(uri) {plain} OR {title})"
        return await self._page(query, condition, bindings)

    async def search(self, query: ResourceQuery) -> tuple[int, list[tuple[Resource, str]]]:
        condition, bindings = _filtered(query)
        name = f"lower(name) LIKE {bindings.add(contains_pattern(fold(query.text)))} ESCAPE '\\'"
        title = self._native.column_condition("title", query.text, bindings)
        text = self._native.text_condition("resource", query.text, bindings)
        condition, bindings = await self._native.indexed_condition(
            "resource", query.text, f"{condition} AND ({name} OR {title} OR {text})", bindings
        )
        total, found = await self._page(query, condition, bindings)
        return total, [(resource, await self.snippet(resource, query.text)) for resource in found]

    async def _page(
        self, query: ResourceQuery, condition: str, bindings: Bindings
    ) -> tuple[int, list[Resource]]:
        source = f"FROM resources WHERE {condition}"
        filters = list(bindings.values)
        # A filtered list is counted while it is scanned; an index counts the unfiltered one.
        count = "count(*) OVER ()" if len(filters) > 1 else f"(SELECT count(*) {source})"
        order = _ORDERS[query.order]
        # Sort only the keys, not whole rows.
        page = f"""SELECT number AS chosen, {count} AS total {source}
                   ORDER BY {order} {bindings.page(query.limit, query.offset)}"""
        sql = f"""SELECT {columns_sql("resource")}, total
                  FROM ({page}) AS page JOIN resources ON number = chosen ORDER BY {order}"""
        rows = await self._driver.rows(sql, *bindings.values)
        if not rows and query.offset:
            return await self._driver.value(f"SELECT count(*) {source}", *filters) or 0, []
        return (rows[0][-1] if rows else 0), [self._rows.from_row(row) for row in rows]

    async def snippet(self, resource: Resource, text: str) -> str:
        """Return the text of a resource around a match, or the start of its description."""
        if not resource.is_text:
            return snippet_start(resource.description or "")
        return snippet_around((await self._contents.read(resource.sha256)).decode(), text)


def _filtered(query: ResourceQuery) -> tuple[str, Bindings]:
    """Return the conditions of a query, except that on the text."""
    bindings = Bindings(query.project)
    if query.mime_type is None:
        return "project = $1", bindings
    return f"project = $1 AND mime_type = {bindings.add(query.mime_type)}", bindings
