"""Reads the searched texts of all entities, to build the index of the ranked search."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.ranked_search import STORED_KINDS, StoredKind, searched_texts
from dittybag.domain.resources import Resource
from dittybag.storage.sql.content_table import ContentTable
from dittybag.storage.sql.entity_rows import EntityRows
from dittybag.storage.sql.sql_driver import SqlDriver

#: The number of entities that are read at a time: each may have a mebibyte of text.
_BATCH: Final = 50


async def searched_entities(driver: SqlDriver) -> AsyncIterator[tuple[StoredKind, int, tuple[str, ...]]]:
    """Yield the kind, the number and the searched texts of every entity."""
    for kind in STORED_KINDS:
        key = ENTITY_TYPES[kind].key
        clauses = f"WHERE {key} > $1 ORDER BY {key} LIMIT {_BATCH}"
        select = EntityRows(kind, driver).select
        last = 0
        while entities := await select(clauses, last):
            for entity in entities:
                last = getattr(entity, key)
                yield kind, last, searched_texts(entity, await _text(entity, driver))


async def _text(entity: Any, driver: SqlDriver) -> str | None:
    """Return the content of a resource, unless it is binary."""
    if not isinstance(entity, Resource) or not entity.is_text:
        return None
    return (await ContentTable(driver).read(entity.sha256)).decode()
