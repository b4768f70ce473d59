"""Search as you type in SQLite: fast, but not exhaustive."""

from __future__ import annotations

from typing import Any, Final

import apsw
import msgspec
from msgspec import Struct

from dittybag.domain.entities import Kind
from dittybag.domain.text import search_words, snippet_around, snippet_around_words
from dittybag.storage.sqlite import prompt_table, resource_table, task_table
from dittybag.storage.sqlite.rows import all_rows
from dittybag.storage.sqlite.text_search import SearchTerm, SearchWords, contains

#: At most this many candidates are searched, the newest first: by title, and, which takes longer, by text.
_MAX_TITLES: Final = 5000
_MAX_TEXTS: Final = 1000


class _SearchedTable(Struct, frozen=True):
    """The table of a kind of entity, and the SQL that searches it."""

    table: str
    key: str
    index: str
    #: The condition on the owner; bind :owner.
    owned: str
    #: An order in which an index has the rows of an owner.
    newest: str
    address: str
    title: str
    #: The source of the snippet.
    text: str
    #: Conditions on the title and on the text; both use the bindings of a `SearchTerm`. Tasks are searched
    #: for words instead.
    in_title: str = ""
    in_text: str = ""


_CONTENT: Final = "(SELECT CAST(bytes AS TEXT) FROM contents WHERE contents.sha256 = resources.sha256)"

_SEARCHED_TABLES: Final[dict[Kind, _SearchedTable]] = {
    "prompt": _SearchedTable(
        table=prompt_table.TABLE.name,
        key=prompt_table.TABLE.key,
        index=prompt_table.INDEX,
        owned="project = :owner",
        newest="updated_at DESC, number DESC",
        address="id",
        title="title",
        in_title=f"({contains('title', 'folded_title')} OR name LIKE :pattern ESCAPE '\\')",
        in_text=contains("content", "folded_content"),
        text="content",
    ),
    "resource": _SearchedTable(
        table=resource_table.TABLE.name,
        key=resource_table.TABLE.key,
        index=resource_table.INDEX,
        owned="project = :owner",
        newest="number DESC",
        address="uri",
        title="coalesce(title, name)",
        in_title=f"({contains('title', 'folded_title')} OR name LIKE :pattern ESCAPE '\\')",
        in_text=f"(is_text AND {contains(_CONTENT, 'folded_content')})",
        text=f"iif(is_text, {_CONTENT}, description)",
    ),
    "task": _SearchedTable(
        table=task_table.TABLE.name,
        key=task_table.TABLE.key,
        index=task_table.INDEX,
        owned="user = :owner",
        newest="priority DESC, id",
        address="id",
        title="title",
        text="notes",
    ),
}


def quick_search(
    connection: apsw.Connection, kind: Kind, owner: int | str, query: str, limit: int
) -> list[tuple[str | int, str, str]]:
    """See `dittybag.domain.ports.ProjectRepository`."""
    source = _SEARCHED_TABLES[kind]
    term, in_title, in_text = _conditions(kind, source, query)
    bindings = {**term, "owner": owner, "limit": limit}
    candidates = _candidates(connection, source, bindings)

    def matching(condition: str, among: list[int]) -> list[int]:
        sql = f"""SELECT {source.key} FROM {source.table}
                  WHERE {source.key} IN (SELECT value FROM json_each(:among))
                        AND +{source.owned} AND {condition}
                  ORDER BY {source.key} DESC LIMIT :limit"""
        rows = connection.execute(sql, {**bindings, "among": msgspec.json.encode(among).decode()})
        return [row[0] for row in rows]

    keys = matching(in_title, candidates)
    if len(keys) < limit:
        keys += [key for key in matching(in_text, candidates[:_MAX_TEXTS]) if key not in keys]
    rows = all_rows(
        connection,
        f"""SELECT {source.key}, {source.address}, {source.title}, {source.text} FROM {source.table}
            WHERE {source.key} IN ({",".join("?" * len(keys[:limit]))})""",
        keys[:limit],
    )
    rows.sort(key=lambda row: keys.index(row[0]))
    snippet = snippet_around_words if kind == "task" else snippet_around
    return [(row[1], row[2], snippet(row[3] or "", query)) for row in rows]


def _conditions(kind: Kind, source: _SearchedTable, query: str) -> tuple[dict[str, str | None], str, str]:
    """Return the bindings of a search, and its conditions on the title and on the text."""
    if kind != "task":
        return SearchTerm(query).bindings(), source.in_title, source.in_text
    words = SearchWords(search_words(query))
    return words.bindings(), words.contained_in("title"), words.contained_in("title", "notes")


def _candidates(connection: apsw.Connection, source: _SearchedTable, bindings: dict[str, Any]) -> list[int]:
    """Return the keys of rows that may contain the term, newest first."""

    def numbers(sql: str) -> list[int]:
        return [row[0] for row in connection.execute(f"{sql} LIMIT {_MAX_TITLES}", bindings)]

    owned = f"SELECT {source.key} FROM {source.table} WHERE {source.owned}"
    newest = f"{owned} ORDER BY {source.newest}"
    if bindings["match"] is None:
        # The query is too short for the index.
        return numbers(newest)
    matching = f"SELECT rowid FROM {source.index} WHERE {source.index} MATCH :match"
    count = len(numbers(owned))
    if count <= _MAX_TEXTS:
        return numbers(newest)
    if count < _MAX_TITLES:
        # Filter by owner first, so that the matches of other owners do not use up the limit.
        return numbers(f"{owned} AND {source.key} IN ({matching}) ORDER BY {source.key} DESC")
    return numbers(f"{matching} ORDER BY rowid DESC")
