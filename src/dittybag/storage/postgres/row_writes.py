"""Writing one row: insert, update and delete, for every table alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import Struct

from dittybag.storage.postgres.connections import Connection, quoted

#: Bytes by their SHA-256.
ContentReader: TypeAlias = Callable[[str], Awaitable[bytes]]


class Table(Struct, frozen=True):
    """A table whose rows have a number and a version."""

    name: str
    #: The column with the number.
    key: str


@lru_cache
def _insert_sql(table: Table, columns: tuple[str, ...]) -> str:
    names = ", ".join(map(quoted, columns))
    places = [f"${number}" for number in range(1, len(columns) + 1)]
    given = places[columns.index(table.key)]
    places[columns.index(table.key)] = "(SELECT number FROM taken)"
    # A counter and not a sequence: a sequence would go on although the row was not kept.
    return f"""WITH taken AS (
        UPDATE counters SET last = greatest(last + ({given}::bigint = 0)::int, {given})
        WHERE name = '{table.name}'
        RETURNING CASE WHEN {given} = 0 THEN last ELSE {given} END AS number)
        INSERT INTO {table.name} ({names}) VALUES ({", ".join(places)}) RETURNING {table.key}"""


@lru_cache
def _numbered_sql(table: Table, columns: tuple[str, ...]) -> str:
    places = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    return f"""INSERT INTO {table.name} ({", ".join(map(quoted, columns))}) VALUES ({places})
               RETURNING {table.key}"""


@lru_cache
def _update_sql(table: Table, columns: tuple[str, ...]) -> str:
    assignments = ", ".join(f"{quoted(column)} = ${place}" for place, column in enumerate(columns, 3))
    return f"UPDATE {table.name} SET {assignments} WHERE {table.key} = $1 AND version = $2"


async def insert(connection: Connection, table: Table, values: Mapping[str, Any]) -> int:
    """Add a row; its number. A number of 0 asks for a new one."""
    make = _numbered_sql if table.key == "number" else _insert_sql
    number: int = await connection.fetchval(make(table, tuple(values)), *values.values())
    return number


async def update(
    connection: Connection, table: Table, number: int, version: int, values: Mapping[str, Any]
) -> bool:
    """Replace a row, unless it has another version by now; whether it had not."""
    sql = _update_sql(table, tuple(values))
    return await connection.execute(sql, number, version, *values.values()) == "UPDATE 1"


async def delete(connection: Connection, table: Table, number: int, version: int) -> bool:
    """Take away a row, unless it has another version by now; whether it had not."""
    sql = f"DELETE FROM {table.name} WHERE {table.key} = $1 AND version = $2"
    return await connection.execute(sql, number, version) == "DELETE 1"
