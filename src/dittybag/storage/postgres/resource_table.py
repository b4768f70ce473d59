"""Resources in PostgreSQL. Their contents are in a separate table, by SHA-256."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import msgspec

from dittybag.domain.queries import ResourceOrder, ResourceQuery
from dittybag.domain.resources import Resource
from dittybag.domain.text import fold, snippet_around, snippet_start
from dittybag.storage.postgres.connections import PostgresConnection
from dittybag.storage.postgres.row_security import RowSecurity
from dittybag.storage.postgres.row_writes import ContentReader, KeyedTable
from dittybag.storage.postgres.rows import (
    Bindings,
    all_rows,
    ascii_lower,
    escape_like,
    first_row,
    is_storable,
    value,
)
from dittybag.storage.postgres.text_search import contains, folded_or_none, pattern
from dittybag.storage.row_mapping import resource_from_row

TABLE: Final = KeyedTable("resources", "number")

_COLUMNS: Final = (
    "number, id, project, name, uri, title, description, mime_type, sha256, size, "
    "created_at, updated_at, version"
)
_ORDERS: Final[dict[ResourceOrder, str]] = {
    "updated": "updated_at DESC, number DESC",
    "name": "name",
    "size": "size DESC, number DESC",
    "type": "mime_type, name",
}


def _digest(uri: str) -> bytes:
    return sha256(uri.encode()).digest()


class ResourceTable:
    """See `dittybag.domain.ports.ResourceRepository`."""

    def __init__(self, connection: PostgresConnection, row_security: RowSecurity) -> None:
        self._connection = connection
        self._row_security = row_security

    async def by_name(self, project: int, name: str) -> Resource | None:
        return await self._select_one("project = $1 AND name = $2", project, name)

    async def by_uri(self, project: int, uri: str) -> Resource | None:
        if not is_storable(uri):
            return None
        return await self._select_one(
            "project = $1 AND uri_digest = $2 AND uri = $3", project, _digest(uri), uri
        )

    async def _select_one(self, condition: str, *bindings: Any) -> Resource | None:
        sql = f"SELECT {_COLUMNS} FROM resources WHERE {condition}"
        row = await first_row(self._connection, sql, *bindings)
        return None if row is None else resource_from_row(row)

    async def listing(
        self, project: int, *, after: int = 0, limit: int | None = None, templates: bool | None = None
    ) -> list[Resource]:
        kind = "" if templates is None else "AND is_template" if templates else "AND NOT is_template"
        clauses = f"WHERE project = $1 {kind} AND number > $2 ORDER BY number LIMIT $3"
        return await select(self._connection, clauses, project, after, limit)

    async def uris(self, project: int, prefix: str, limit: int) -> list[str]:
        sql = """SELECT uri FROM resources WHERE project = $1 AND NOT is_template AND lower(uri) LIKE $2
                 ORDER BY uri LIMIT $3"""
        prefix_pattern = escape_like(ascii_lower(prefix)) + "%"
        return [row[0] for row in await all_rows(self._connection, sql, project, prefix_pattern, limit)]

    async def page(self, query: ResourceQuery) -> tuple[int, list[Resource]]:
        condition, bindings = _matching(query)
        if query.text:
            # A URI is compared like a name, because it often ends with the name.
            plain = bindings.add(f"%{escape_like(ascii_lower(query.text))}%")
            term = bindings.add(pattern(query.text))
            condition += (
                f" AND (lower(name) LIKE {plain} OR lower(uri) LIKE {plain} OR {contains('title', term)})"
            )
        return await self._page(query, condition, bindings)

    async def search(self, query: ResourceQuery) -> tuple[int, list[tuple[Resource, str]]]:
        condition, bindings = _matching(query)
        term = bindings.add(pattern(query.text))
        condition += (
            f" AND (lower(name) LIKE {term} OR {contains('title', term)} OR folded_content LIKE {term})"
        )
        total, found = await self._page(
            query, *await self._row_security.indexed_condition("resources", condition, bindings)
        )
        return total, [(resource, await self._snippet(resource, query.text)) for resource in found]

    async def _page(
        self, query: ResourceQuery, condition: str, bindings: Bindings
    ) -> tuple[int, list[Resource]]:
        total: int | None = await value(
            self._connection, f"SELECT count(*) FROM resources WHERE {condition}", *bindings.values
        )
        page = f"LIMIT {bindings.add(query.limit)} OFFSET {bindings.add(query.offset)}"
        clauses = f"WHERE {condition} ORDER BY {_ORDERS[query.order]} {page}"
        return total or 0, await select(self._connection, clauses, *bindings.values)

    async def types(self, project: int, limit: int) -> list[tuple[str, int]]:
        sql = """SELECT mime_type, count(*) FROM resources WHERE project = $1
                 GROUP BY mime_type ORDER BY count(*) DESC, mime_type LIMIT $2"""
        return [(row[0], row[1]) for row in await all_rows(self._connection, sql, project, limit)]

    async def _snippet(self, resource: Resource, query: str) -> str:
        if not resource.is_text:
            return snippet_start(resource.description or "")
        return snippet_around((await read_content(self._connection, resource.sha256)).decode(), query)


def _matching(query: ResourceQuery) -> tuple[str, Bindings]:
    bindings = Bindings(query.project)
    condition = "project = $1"
    if query.mime_type is not None:
        condition += f" AND mime_type = {bindings.add(query.mime_type)}"
    return condition, bindings


async def select(connection: PostgresConnection, clauses: str, *values: Any) -> list[Resource]:
    """Return the resources of any project that a query with these clauses finds."""
    rows = await all_rows(connection, f"SELECT {_COLUMNS} FROM resources {clauses}", *values)
    return [resource_from_row(row) for row in rows]


async def store_content(connection: PostgresConnection, content: bytes) -> str:
    """Store content unless it exists. Returns its SHA-256."""
    digest = sha256(content).hexdigest()
    sql = "INSERT INTO contents (sha256, bytes) VALUES ($1, $2) ON CONFLICT DO NOTHING"
    await connection.execute(sql, digest, content)
    return digest


async def read_content(connection: PostgresConnection, digest: str) -> bytes:
    """Return the content with this SHA-256. Raises `LookupError`."""
    found: bytes | None = await value(connection, "SELECT bytes FROM contents WHERE sha256 = $1", digest)
    if found is None:
        raise LookupError(f"no content with the hash {digest}")
    return found


async def delete_unused_contents(connection: PostgresConnection) -> None:
    """Delete the contents that neither a resource nor the change log refers to."""
    used = """SELECT sha256, project FROM resources
              UNION SELECT state::json ->> 'sha256', project
              FROM changes, LATERAL (VALUES (before), (after)) AS states (state)
              WHERE kind = 'resource' AND state::json ->> 'sha256' IS NOT NULL"""
    await connection.execute(f"DELETE FROM content_uses WHERE (sha256, project) NOT IN ({used})")
    await connection.execute(
        """DELETE FROM contents
           WHERE NOT EXISTS (SELECT FROM content_uses WHERE content_uses.sha256 = contents.sha256)"""
    )


async def row_values(content: ContentReader, resource: Resource) -> dict[str, Any]:
    text = (await content(resource.sha256)).decode() if resource.is_text else None
    return {
        **msgspec.structs.asdict(resource),
        "uri_digest": _digest(resource.uri),
        "is_text": resource.is_text,
        "is_template": resource.is_template,
        "folded_title": folded_or_none(resource.title),
        "folded_content": None if text is None else fold(text),
    }
