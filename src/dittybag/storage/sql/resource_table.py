"""Resources. Their contents are in a separate table."""

from __future__ import annotations

from typing import Final

from dittybag.domain.queries import ResourceOrder, ResourceQuery
from dittybag.domain.resources import Resource
from dittybag.storage.sql.entity_rows import EntityRows, columns_sql
from dittybag.storage.sql.native_queries import NativeQueries
from dittybag.storage.sql.sql_driver import (
    Bindings,
    SqlDriver,
    ascii_lower,
    contains_pattern,
    escape_like,
    from_nearer_end,
)

_ORDERS: Final[dict[ResourceOrder, str]] = {
    "updated": "updated_at DESC, number DESC",
    "name": "name",
    "size": "size DESC, number DESC",
    "type": "mime_type, name",
}

_SUM: Final = "CAST(sum(count) AS bigint)"


class ResourceTable:
    """Resources."""

    def __init__(self, driver: SqlDriver, rows: EntityRows, native: NativeQueries) -> None:
        self._driver = driver
        self._rows = rows
        self._native = native

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
        """Return resources, templates or (`None`) both in creation order, starting after number `after`."""
        bindings = Bindings(project, after)
        kind = "" if templates is None else f"AND is_template = {bindings.add(templates)}"
        clauses = f"WHERE project = $1 AND number > $2 {kind} ORDER BY number {bindings.page(limit)}"
        return await self._rows.select(clauses, *bindings.values)

    async def uris(self, project: int, prefix: str, limit: int) -> list[str]:
        """Return URIs of resources, not of templates, that start with `prefix`, ignoring case."""
        sql = """SELECT uri FROM resources
                 WHERE project = $1 AND NOT is_template AND lower(uri) LIKE $2 ESCAPE '\\'
                 ORDER BY uri LIMIT $3"""
        pattern = escape_like(ascii_lower(prefix)) + "%"
        return [row[0] for row in await self._driver.rows(sql, project, pattern, limit)]

    async def types(self, project: int, limit: int) -> list[tuple[str, int]]:
        """Return MIME types and the number of resources of each, most used first, then by name."""
        sql = f"""SELECT mime_type, {_SUM} AS total FROM {self._native.resource_counts_sql} AS counts
                  WHERE project = $1 GROUP BY mime_type ORDER BY total DESC, mime_type LIMIT $2"""
        return [(row[0], row[1]) for row in await self._driver.rows(sql, project, limit)]

    async def page(self, query: ResourceQuery) -> tuple[int, list[Resource]]:
        """Count the resources with the text in name, title or URI; return a page of them."""
        condition, bindings = _filtered(query)
        if not query.text:
            return await self._unfiltered_page(query, condition, bindings)
        # A URI is compared like a name, because it often ends with the name.
        plain = f"LIKE {bindings.add(contains_pattern(ascii_lower(query.text)))} ESCAPE '\\'"
        title = self._native.column_condition("title", query.text, bindings)
        condition += f" AND (lower(name) {plain} OR lower(uri) {plain} OR {title})"
        condition, bindings = await self._native.resource_condition(condition, bindings)
        return await self._page(query, condition, bindings)

    async def _unfiltered_page(
        self, query: ResourceQuery, condition: str, bindings: Bindings
    ) -> tuple[int, list[Resource]]:
        """Return a page of all resources, or of those of a MIME type. Their number is kept."""
        count = f"SELECT {resource_count(self._native, condition)}"
        total = await self._driver.value(count, *bindings.values) or 0
        order, limit, offset = from_nearer_end(_ORDERS[query.order], query.limit, query.offset, total)
        page = (
            f"SELECT number FROM resources WHERE {condition} ORDER BY {order} {bindings.page(limit, offset)}"
        )
        clauses = f"WHERE number IN ({page}) ORDER BY {_ORDERS[query.order]}"
        return total, await self._rows.select(clauses, *bindings.values)

    async def _page(
        self, query: ResourceQuery, condition: str, bindings: Bindings
    ) -> tuple[int, list[Resource]]:
        source = f"FROM resources WHERE {condition}"
        filters = list(bindings.values)
        order = _ORDERS[query.order]
        # Sort only the keys, not whole rows.
        page = f"""SELECT number AS chosen, count(*) OVER () AS total {source}
                   ORDER BY {order} {bindings.page(query.limit, query.offset)}"""
        sql = f"""SELECT {columns_sql("resource")}, total
                  FROM ({page}) AS page JOIN resources ON number = chosen ORDER BY {order}"""
        rows = await self._driver.rows(sql, *bindings.values)
        if not rows and query.offset:
            return await self._driver.value(f"SELECT count(*) {source}", *filters) or 0, []
        return (rows[0][-1] if rows else 0), [self._rows.from_row(row) for row in rows]


def resource_count(native: NativeQueries, condition: str) -> str:
    """SQL for the number of resources with a condition on the project and the MIME type."""
    return f"(SELECT coalesce({_SUM}, 0) FROM {native.resource_counts_sql} AS counts WHERE {condition})"


def _filtered(query: ResourceQuery) -> tuple[str, Bindings]:
    """Return the conditions of a query, except that on the text."""
    bindings = Bindings(query.project)
    if query.mime_type is None:
        return "project = $1", bindings
    return f"project = $1 AND mime_type = {bindings.add(query.mime_type)}", bindings
