"""Ranked search over prompts, resources and tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dittybag.domain.entities import Kind
from dittybag.domain.ranked_search import Frequencies, SearchTerm, StoredKind, StoredMatch, StoredSearch
from dittybag.domain.text import fold_accents
from dittybag.storage.sql.entity_rows import EntityRows
from dittybag.storage.sql.native_queries import NativeQueries
from dittybag.storage.sql.sql_driver import Bindings, SqlDriver, ascii_lower, contains_pattern
from dittybag.storage.sql.task_visibility import visible_tasks

#: The columns without a folded copy, in which a quoted text is found.
_PLAIN: Final[dict[StoredKind, tuple[str, ...]]] = {
    "prompt": ("name", "description", "CAST(tags AS text)"),
    "resource": ("name", "description", "uri"),
    "task": ("project",),
}


class RankedTable:
    """Ranked search over prompts, resources and tasks."""

    def __init__(self, driver: SqlDriver, rows: Mapping[Kind, EntityRows], native: NativeQueries) -> None:
        self._driver = driver
        self._rows = rows
        self._native = native

    async def frequencies(self, terms: Sequence[SearchTerm]) -> Frequencies:
        return await self._native.ranked.frequencies(terms)

    async def find(self, search: StoredSearch) -> list[StoredMatch]:
        return await self._native.ranked.find(search)

    async def entities(self, kind: Kind, numbers: Sequence[int]) -> list[Any]:
        """Return the entities with these numbers, in any order."""
        rows = self._rows[kind]
        condition = self._driver.any_of(rows.type.key, "$1")
        return await rows.select(f"WHERE {condition}", self._driver.list_value(numbers))


def owner_condition(
    driver: SqlDriver,
    search: StoredSearch,
    kind: StoredKind,
    bindings: Bindings,
    owner: str,
    *,
    prefix: str = "",
) -> str:
    """SQL for whether a row belongs to the project, or is visible to the user, of a placeholder.

    `prefix`: the name of the table with a dot, or what keeps the database from using an index.
    """
    if kind != "task":
        return f"{prefix}project = {owner}"
    if prefix.endswith("."):
        return visible_tasks(driver, search.view, bindings, owner, table=prefix)
    return visible_tasks(driver, search.view, bindings, owner, column=f'{prefix}"user"')


def phrase_conditions(
    native: NativeQueries, kind: StoredKind, phrase: str, bindings: Bindings
) -> tuple[str, str]:
    """SQL for whether an entity contains a quoted text, ignoring case.

    The first condition is for the texts with a trigram index, the second for the others.
    """
    if kind == "task":
        # The folded copies of the texts of tasks have no accents.
        bare = fold_accents(phrase)
        conditions = [native.column_condition(name, bare, bindings) for name in ("title", "notes")]
    else:
        conditions = [
            native.column_condition("title", phrase, bindings),
            native.text_condition(kind, phrase, bindings),
        ]
    plain = f"LIKE {bindings.add(contains_pattern(ascii_lower(phrase)))} ESCAPE '\\'"
    return " OR ".join(conditions), " OR ".join(f"lower({column}) {plain}" for column in _PLAIN[kind])
