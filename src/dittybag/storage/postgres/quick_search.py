"""Search as you type in PostgreSQL: fast, but not exhaustive."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dittybag.domain.changes import Kind
from dittybag.domain.text import snippet_around
from dittybag.storage.postgres import prompt_table, resource_table, task_table
from dittybag.storage.postgres.connections import PostgresConnection
from dittybag.storage.postgres.rows import all_rows
from dittybag.storage.postgres.text_search import contains, pattern

#: At most this many rows are searched, the newest first: by title, and, which takes longer, by text.
_MAX_TITLES: Final = 10_000
_MAX_TEXTS: Final = 2000


class _SearchedTable(Struct, frozen=True):
    """The table of a kind of entity, and the SQL that searches it."""

    table: str
    key: str
    #: The column of the owner.
    owner: str
    #: An order in which an index has the rows of an owner.
    newest: str
    address: str
    title: str
    #: Conditions on the title and on the text.
    in_title: str
    in_text: str
    #: The source of the snippet.
    text: str


_SEARCHED_TABLES: Final[dict[Kind, _SearchedTable]] = {
    "prompt": _SearchedTable(
        table=prompt_table.TABLE.name,
        key=prompt_table.TABLE.key,
        owner="project",
        newest="updated_at DESC, number DESC",
        address="id",
        title="title",
        in_title=f"({contains('title', '$2')} OR lower(name) LIKE $2)",
        in_text=contains("content", "$2"),
        text="content",
    ),
    "resource": _SearchedTable(
        table=resource_table.TABLE.name,
        key=resource_table.TABLE.key,
        owner="project",
        newest="number DESC",
        address="uri",
        title="coalesce(title, name)",
        in_title=f"({contains('title', '$2')} OR lower(name) LIKE $2)",
        in_text="folded_content LIKE $2",
        text="""CASE WHEN is_text THEN (
                    SELECT convert_from(bytes, 'UTF8') FROM contents WHERE contents.sha256 = resources.sha256)
                ELSE description END""",
    ),
    "task": _SearchedTable(
        table=task_table.TABLE.name,
        key=task_table.TABLE.key,
        owner='"user"',
        newest="priority DESC, id",
        address="id",
        title="title",
        in_title=contains("title", "$2"),
        in_text=contains("notes", "$2"),
        text="notes",
    ),
}


async def quick_search(
    connection: PostgresConnection, kind: Kind, owner: int | str, query: str, limit: int
) -> list[tuple[str | int, str, str]]:
    """See `dittybag.domain.ports.ProjectRepository`."""
    source = _SEARCHED_TABLES[kind]
    term = pattern(query)

    async def matching(condition: str, look: int) -> list[int]:
        sql = f"""SELECT {source.key} FROM (
                      SELECT * FROM {source.table} WHERE {source.owner} = $1 ORDER BY {source.newest} LIMIT $3
                  ) AS newest WHERE {condition} ORDER BY {source.key} DESC LIMIT $4"""
        return [row[0] for row in await all_rows(connection, sql, owner, term, look, limit)]

    keys = await matching(source.in_title, _MAX_TITLES)
    if len(keys) < limit:
        keys += [key for key in await matching(source.in_text, _MAX_TEXTS) if key not in keys]
    sql = f"""SELECT {source.key}, {source.address}, {source.title}, {source.text} FROM {source.table}
              WHERE {source.key} = ANY($1)"""
    rows = await all_rows(connection, sql, keys[:limit]) if keys else []
    rows = sorted(rows, key=lambda row: keys.index(row[0]))
    return [(row[1], row[2], snippet_around(row[3] or "", query)) for row in rows]
