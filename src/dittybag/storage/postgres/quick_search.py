"""Search as you type in PostgreSQL: fast, but not exhaustive."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dittybag.domain.entities import Kind
from dittybag.domain.text import search_words, snippet_around, snippet_around_words
from dittybag.storage.postgres import prompt_table, resource_table, task_table
from dittybag.storage.postgres.connections import PostgresConnection
from dittybag.storage.postgres.rows import Bindings, all_rows
from dittybag.storage.postgres.text_search import contain_words, contains, pattern

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
    #: The source of the snippet.
    text: str
    #: Conditions on the title and on the text; $4 is the pattern. Tasks are searched for words instead.
    in_title: str = ""
    in_text: str = ""


_SEARCHED_TABLES: Final[dict[Kind, _SearchedTable]] = {
    "prompt": _SearchedTable(
        table=prompt_table.TABLE.name,
        key=prompt_table.TABLE.key,
        owner="project",
        newest="updated_at DESC, number DESC",
        address="id",
        title="title",
        in_title=f"({contains('title', '$4')} OR lower(name) LIKE $4)",
        in_text=contains("content", "$4"),
        text="content",
    ),
    "resource": _SearchedTable(
        table=resource_table.TABLE.name,
        key=resource_table.TABLE.key,
        owner="project",
        newest="number DESC",
        address="uri",
        title="coalesce(title, name)",
        in_title=f"({contains('title', '$4')} OR lower(name) LIKE $4)",
        in_text="folded_content LIKE $4",
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
        text="notes",
    ),
}


async def quick_search(
    connection: PostgresConnection, kind: Kind, owner: int | str, query: str, limit: int
) -> list[tuple[str | int, str, str]]:
    """See `dittybag.domain.ports.ProjectRepository`."""
    source = _SEARCHED_TABLES[kind]
    words = search_words(query)

    async def matching(look: int, condition: str, *columns: str) -> list[int]:
        bindings = Bindings(owner, look, limit)
        if kind == "task":
            condition = contain_words(words, columns, bindings.add)
        else:
            bindings.add(pattern(query))
        sql = f"""SELECT {source.key} FROM (
                      SELECT * FROM {source.table} WHERE {source.owner} = $1 ORDER BY {source.newest} LIMIT $2
                  ) AS newest WHERE {condition} ORDER BY {source.key} DESC LIMIT $3"""
        return [row[0] for row in await all_rows(connection, sql, *bindings.values)]

    keys = await matching(_MAX_TITLES, source.in_title, "title")
    if len(keys) < limit:
        in_text = await matching(_MAX_TEXTS, source.in_text, "title", "notes")
        keys += [key for key in in_text if key not in keys]
    sql = f"""SELECT {source.key}, {source.address}, {source.title}, {source.text} FROM {source.table}
              WHERE {source.key} = ANY($1)"""
    rows = await all_rows(connection, sql, keys[:limit]) if keys else []
    rows = sorted(rows, key=lambda row: keys.index(row[0]))
    snippet = snippet_around_words if kind == "task" else snippet_around
    return [(row[1], row[2], snippet(row[3] or "", query)) for row in rows]
