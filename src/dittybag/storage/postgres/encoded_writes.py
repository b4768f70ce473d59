"""Writes as the functions of the database take them: a row of values for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from dittybag.domain.changes import Action
from dittybag.domain.entities import Entity, Kind, key_of, project_of, type_of
from dittybag.storage.sql.connected_tables import ConnectedTables
from dittybag.storage.sql.row_mapping import state_to_json


class EncodedWrite(NamedTuple):
    """See `commit_writes` and `apply_changes` in `0001_create.sql`."""

    action: Action
    kind: Kind
    #: 0 if the database assigns it.
    number: int
    #: The version of the row, 0 if it is new.
    version: int
    #: None if it is the number that the database assigns.
    entity: str | None
    project: int | None
    before: str | None
    after: str | None
    #: The columns that are not in the state after the write, as JSON.
    more_columns: str | None

    @property
    def size(self) -> int:
        """The number of characters, roughly."""
        return sum(len(text) for text in (self.before, self.after, self.more_columns) if text is not None)


def encode_write(
    tables: ConnectedTables, action: Action, before: Any, after: Any, text: str | None
) -> EncodedWrite:
    """Encode a write. `text`: the content of a text resource after it."""
    entity: Entity = before if after is None else after
    described = type_of(entity)
    kind = described.kind
    number: int = getattr(entity, described.key)
    columns = None if after is None else _more_columns(tables, kind, after, text)
    return EncodedWrite(
        action,
        kind,
        number,
        0 if before is None else before.version,
        key_of(entity) if described.key == "number" or number else None,
        project_of(entity),
        state_to_json(before),
        state_to_json(after),
        None if columns is None else msgspec.json.encode(columns).decode(),
    )


def numbered(entity: Any, number: int) -> Any:
    """Return an entity with the number that it got."""
    if entity is None:
        return None
    key = type_of(entity).key
    return entity if getattr(entity, key) == number else replace(entity, **{key: number})


def columns_of(rows: Sequence[Sequence[Any]], count: int) -> list[Sequence[Any]]:
    """Return the columns of rows with this number of values: the arrays that a function takes."""
    return list(zip(*rows, strict=True)) if rows else [()] * count


def _more_columns(tables: ConnectedTables, kind: Kind, entity: Entity, text: str | None) -> dict[str, Any]:
    rows = tables.rows[kind]
    values = rows.values(entity) | tables.native.search_columns(entity, text)
    # The state of a task has no fields with default values.
    known = (rows.type.key,) if kind == "task" else rows.type.columns
    columns = {name: value for name, value in values.items() if name not in known}
    if "uri_digest" in columns:
        columns["uri_digest"] = rf"\x{columns['uri_digest'].hex()}"
    return columns
