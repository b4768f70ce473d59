"""Resources in SQLite. Their contents are in a separate table, by SHA-256."""

from __future__ import annotations

from typing import Any, Final

import apsw
from msgspec.structs import asdict

from dittybag.domain.queries import ResourceOrder, ResourceQuery
from dittybag.domain.resources import Resource
from dittybag.domain.text import fold, snippet_around, snippet_start
from dittybag.storage.row_mapping import resource_from_row
from dittybag.storage.sqlite.row_writes import KeyedTable
from dittybag.storage.sqlite.rows import Bindings, all_rows, escape_like, first_row, value
from dittybag.storage.sqlite.text_search import PendingIndex, SearchTerm, contains, folded_or_none

TABLE: Final = KeyedTable("resources", "number")
INDEX: Final = "resource_index"

_COLUMNS: Final = (
    "number, id, project, name, uri, title, description, mime_type, sha256, size, "
    "created_at, updated_at, version"
)
_MATCHES: Final = (
    f"(name LIKE :pattern ESCAPE '\\' OR {contains('title', 'folded_title')} OR (is_text AND "
    + contains(
        "(SELECT CAST(bytes AS TEXT) FROM contents WHERE contents.sha256 = resources.sha256)",
        "folded_content",
    )
    + "))"
)
#: A URI is compared like a name, because it often ends with the name.
_NAME_MATCHES: Final = (
    f"(name LIKE :plain ESCAPE '\\' OR uri LIKE :plain ESCAPE '\\' OR {contains('title', 'folded_title')})"
)
_ORDERS: Final[dict[ResourceOrder, str]] = {
    "updated": "updated_at DESC, number DESC",
    "name": "name",
    "size": "size DESC, number DESC",
    "type": "mime_type, name",
}


class ResourceTable:
    """See `dittybag.domain.ports.ResourceRepository`."""

    def __init__(self, connection: apsw.Connection, pending: PendingIndex) -> None:
        self._connection = connection
        self._pending = pending

    async def by_name(self, project: int, name: str) -> Resource | None:
        return self._select_one("project = ? AND name = ?", (project, name))

    async def by_uri(self, project: int, uri: str) -> Resource | None:
        return self._select_one("project = ? AND uri = ?", (project, uri))

    def _select_one(self, condition: str, bindings: tuple[Any, ...]) -> Resource | None:
        row = first_row(self._connection, f"SELECT {_COLUMNS} FROM resources WHERE {condition}", bindings)
        return None if row is None else resource_from_row(row)

    async def listing(
        self, project: int, *, after: int = 0, limit: int | None = None, templates: bool | None = None
    ) -> list[Resource]:
        kind = "" if templates is None else f"AND is_template = {int(templates)}"
        clauses = f"WHERE project = ? {kind} AND number > ? ORDER BY number LIMIT ?"
        return select(self._connection, clauses, (project, after, -1 if limit is None else limit))

    async def uris(self, project: int, prefix: str, limit: int) -> list[str]:
        sql = r"""SELECT uri FROM resources WHERE project = ? AND NOT is_template AND uri LIKE ? ESCAPE '\'
                  ORDER BY uri LIMIT ?"""
        return [
            row[0] for row in all_rows(self._connection, sql, (project, escape_like(prefix) + "%", limit))
        ]

    async def page(self, query: ResourceQuery) -> tuple[int, list[Resource]]:
        return self._page(query, _NAME_MATCHES if query.text else "")

    async def search(self, query: ResourceQuery) -> tuple[int, list[tuple[Resource, str]]]:
        self._pending.write()
        candidates = SearchTerm(query.text).candidates(INDEX, TABLE.key).removeprefix("AND ")
        total, found = self._page(query, f"{candidates} AND {_MATCHES}" if candidates else _MATCHES)
        return total, [(resource, self._snippet(resource, query.text)) for resource in found]

    def _page(self, query: ResourceQuery, text_condition: str) -> tuple[int, list[Resource]]:
        conditions = ["project = :project"]
        if query.mime_type is not None:
            conditions.append("mime_type = :mime_type")
        if text_condition:
            conditions.append(text_condition)
        source = f"FROM resources WHERE {' AND '.join(conditions)}"
        bindings = {
            **SearchTerm(query.text).bindings(),
            "plain": f"%{escape_like(query.text)}%",
            **asdict(query),
        }
        # A filtered list is counted while it is scanned; an index counts the unfiltered one.
        count = "count(*) OVER ()" if len(conditions) > 1 else f"(SELECT count(*) {source})"
        order = _ORDERS[query.order]
        page = f"SELECT number, {count} AS total {source} ORDER BY {order} LIMIT :limit OFFSET :offset"
        rows = all_rows(
            self._connection,
            # Sort only the keys, not whole rows.
            f"SELECT {_COLUMNS}, total FROM ({page}) JOIN resources USING (number) ORDER BY {order}",
            bindings,
        )
        if not rows and query.offset:
            return value(self._connection, f"SELECT count(*) {source}", bindings), []
        return (rows[0][-1] if rows else 0), [resource_from_row(row) for row in rows]

    async def types(self, project: int, limit: int) -> list[tuple[str, int]]:
        sql = """SELECT mime_type, count(*) FROM resources WHERE project = ?
                 GROUP BY mime_type ORDER BY count(*) DESC, mime_type LIMIT ?"""
        return [(row[0], row[1]) for row in all_rows(self._connection, sql, (project, limit))]

    def _snippet(self, resource: Resource, query: str) -> str:
        if not resource.is_text:
            return snippet_start(resource.description or "")
        return snippet_around(read_content(self._connection, resource.sha256).decode(), query)


def select(connection: apsw.Connection, clauses: str, bindings: Bindings) -> list[Resource]:
    """Return the resources of any project that a query with these clauses finds."""
    rows = all_rows(connection, f"SELECT {_COLUMNS} FROM resources {clauses}", bindings)
    return [resource_from_row(row) for row in rows]


def store_content(connection: apsw.Connection, content: bytes) -> str:
    """Store content unless it exists. Returns its SHA-256."""
    # hashlib loads OpenSSL, and most servers never store a resource.
    from hashlib import sha256

    digest = sha256(content).hexdigest()
    connection.execute("INSERT OR IGNORE INTO contents (sha256, bytes) VALUES (?, ?)", (digest, content))
    return digest


def read_content(connection: apsw.Connection, digest: str) -> bytes:
    """Return the content with this SHA-256. Raises `LookupError`."""
    found: bytes | None = value(connection, "SELECT bytes FROM contents WHERE sha256 = ?", (digest,))
    if found is None:
        raise LookupError(f"no content with the hash {digest}")
    return found


def delete_unused_contents(connection: apsw.Connection) -> None:
    """Delete the contents that neither a resource nor the change log refers to."""
    connection.execute(
        """DELETE FROM contents WHERE sha256 NOT IN (
               SELECT sha256 FROM resources
               UNION SELECT coalesce(before ->> 'sha256', '') FROM changes WHERE kind = 'resource'
               UNION SELECT coalesce(after ->> 'sha256', '') FROM changes WHERE kind = 'resource')"""
    )


def row_values(connection: apsw.Connection, resource: Resource) -> dict[str, Any]:
    text = read_content(connection, resource.sha256).decode() if resource.is_text else None
    return {
        **asdict(resource),
        "is_text": resource.is_text,
        "is_template": resource.is_template,
        "folded_title": folded_or_none(resource.title),
        "folded_content": folded_or_none(text),
    }


def index_text(connection: apsw.Connection, resource: Resource) -> str:
    text = read_content(connection, resource.sha256).decode() if resource.is_text else ""
    return fold(f"{resource.name}\n{resource.title or ''}\n{text}")
