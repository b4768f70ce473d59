"""Rows of projects, prompts, resources and tasks, derived from the descriptions of the entities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import msgspec
from msgspec.structs import asdict

from dittybag.domain.entities import ENTITY_TYPES, JSON_FORMATS, Entity, EntityType, Field, Kind
from dittybag.domain.resources import Resource
from dittybag.domain.text import fold, fold_accents
from dittybag.storage.sql.row_mapping import row_reader
from dittybag.storage.sql.sql_driver import Row, SqlDriver, ascii_lower

#: The columns with a case-folded copy where `lower` gives something else: `folded_title` and so on.
_FOLDED: Final[dict[Kind, tuple[str, ...]]] = {
    "prompt": ("title", "content"),
    "resource": ("title",),
    "task": ("title", "notes"),
}


@cache
def columns_sql(kind: Kind) -> str:
    """Return the columns of an entity in SQL, in the order of its fields."""
    return ", ".join(map(quoted, ENTITY_TYPES[kind].columns))


def quoted(name: str) -> str:
    """Quote a name as an SQL identifier."""
    return f'"{name}"'


def folding(kind: Kind) -> Callable[[str], str]:
    """Return the function that folds the texts of entities for a search."""
    return fold_accents if kind == "task" else fold


def folded_or_none(text: str | None, fold_text: Callable[[str], str] = fold) -> str | None:
    """Return the folded text; None if `lower`, which changes only ASCII letters, gives the same."""
    if text is None or text.isascii():
        return None
    result = fold_text(text)
    return None if result == ascii_lower(text) else result


def folded_columns(entity: Entity, kind: Kind) -> dict[str, str | None]:
    """Return the folded copies of the texts of an entity."""
    return {
        f"folded_{name}": folded_or_none(getattr(entity, name), folding(kind))
        for name in _FOLDED.get(kind, ())
    }


class EntityRows:
    """Reads and writes the rows of one kind of entity."""

    def __init__(self, kind: Kind, driver: SqlDriver) -> None:
        self._driver = driver
        self.kind = kind
        self.type: EntityType = ENTITY_TYPES[kind]
        self._encoders = {
            field.name: encode
            for field in self.type.edited
            if (encode := driver.list_value if field.format == "list" else _json_encoder(field)) is not None
        }
        #: Converts a row that begins with the columns of the entity.
        self.from_row = _reader(kind, driver.read_list)

    def select_sql(self, clauses: str) -> str:
        """Return a query with these clauses for the columns of the entity."""
        return f"SELECT {columns_sql(self.kind)} FROM {self.type.table} {clauses}"

    async def select(self, clauses: str, *values: Any) -> list[Any]:
        """Return the entities that a query with these clauses finds."""
        return [self.from_row(row) for row in await self._driver.rows(self.select_sql(clauses), *values)]

    async def select_one(self, condition: str, *values: Any) -> Any:
        """Return the entity for which a condition is true, or `None`."""
        row = await self._driver.row(self.select_sql(f"WHERE {condition}"), *values)
        return None if row is None else self.from_row(row)

    def values(self, entity: Entity) -> dict[str, Any]:
        """Return the values of the columns that follow from the entity alone."""
        values = asdict(entity)
        for name, encode in self._encoders.items():
            values[name] = encode(values[name])
        if isinstance(entity, Resource):
            values |= {"is_text": entity.is_text, "is_template": entity.is_template}
        return values | folded_columns(entity, self.kind)

    async def update(self, number: int, version: int | None, values: dict[str, Any]) -> bool:
        """Update a row if it still has this version, or any. Returns whether it had."""
        sql = _update_sql(self.type.table, self.type.key, tuple(values))
        if version is None:
            return await self._driver.run(sql, number, *values.values()) == 1
        condition = f"{sql} AND version = ${len(values) + 2}"
        return await self._driver.run(condition, number, *values.values(), version) == 1

    async def insert(self, values: dict[str, Any]) -> int:
        """Insert a row and return its number. The number 0 requests a new one."""
        return await self._driver.insert(self.type.table, self.type.key, values)

    async def delete(self, number: int, version: int) -> bool:
        """Delete a row if it still has this version. Returns whether it had."""
        sql = f"DELETE FROM {self.type.table} WHERE {self.type.key} = $1 AND version = $2"
        return await self._driver.run(sql, number, version) == 1

    async def remove(self, number: int) -> None:
        """Delete a row, if it exists, whatever its version."""
        await self._driver.run(f"DELETE FROM {self.type.table} WHERE {self.type.key} = $1", number)


@cache
def _reader(kind: Kind, read_list: Callable[[Any], tuple[str, ...]]) -> Callable[[Row], Any]:
    described = ENTITY_TYPES[kind]
    types = {field.name: field.type for field in msgspec.structs.fields(described.struct)}
    decoders: dict[str, Callable[[Any], Any]] = {}
    for field in described.edited:
        if field.format == "list":
            decoders[field.name] = read_list
        elif field.format in JSON_FORMATS:
            decoders[field.name] = json_reader(types[field.name])
    return row_reader(described.struct, **decoders)


@cache
def _update_sql(table: str, key: str, columns: tuple[str, ...]) -> str:
    assignments = ", ".join(f"{quoted(name)} = ${number}" for number, name in enumerate(columns, 2))
    return f"UPDATE {table} SET {assignments} WHERE {key} = $1"


def _json_encoder(field: Field) -> Callable[[Sequence[Any]], str] | None:
    return _to_json if field.format in JSON_FORMATS else None


def _to_json(items: Sequence[Any]) -> str:
    return msgspec.json.encode(items).decode() if items else "[]"


@cache
def json_reader(type_: Any) -> Callable[[str], Any]:
    """Return a function that decodes a column with a JSON array into a tuple."""
    decode = msgspec.json.Decoder(type_).decode
    return lambda text: () if text == "[]" else decode(text)
