"""Insert, update and delete of a single row in any table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import Struct

from dittybag.storage.postgres.connections import PostgresConnection, quoted

#: Returns the content with a SHA-256.
ContentReader: TypeAlias = Callable[[str], Awaitable[bytes]]


class KeyedTable(Struct, frozen=True):
    """A table whose rows have a numeric key and a version."""

    name: str
    #: The name of the key column.
    key: str


def _insert_sql(table: KeyedTable, columns: tuple[str, ...]) -> str:
    build_sql = _insert_numbered_sql if table.key == "number" else _insert_counted_sql
    return build_sql(table, columns)


@lru_cache
def _returning_sql(table: KeyedTable, columns: tuple[str, ...]) -> str:
    return f"{_insert_sql(table, columns)} RETURNING {table.key}"


@lru_cache
def _put_sql(table: KeyedTable, columns: tuple[str, ...]) -> str:
    assignments = ", ".join(f"{quoted(column)} = excluded.{quoted(column)}" for column in columns)
    return f"{_insert_sql(table, columns)} ON CONFLICT ({table.key}) DO UPDATE SET {assignments}"


def _insert_counted_sql(table: KeyedTable, columns: tuple[str, ...]) -> str:
    names = ", ".join(map(quoted, columns))
    placeholders = [f"${number}" for number in range(1, len(columns) + 1)]
    given = placeholders[columns.index(table.key)]
    placeholders[columns.index(table.key)] = "(SELECT number FROM taken)"
    # A counter instead of a sequence: a rollback would leave a gap in a sequence.
    return f"""WITH taken AS (
        UPDATE counters SET last = greatest(last + ({given}::bigint = 0)::int, {given})
        WHERE name = '{table.name}'
        RETURNING CASE WHEN {given} = 0 THEN last ELSE {given} END AS number)
        INSERT INTO {table.name} ({names}) VALUES ({", ".join(placeholders)})"""


def _insert_numbered_sql(table: KeyedTable, columns: tuple[str, ...]) -> str:
    placeholders = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    return f"INSERT INTO {table.name} ({', '.join(map(quoted, columns))}) VALUES ({placeholders})"


@lru_cache
def _update_sql(table: KeyedTable, columns: tuple[str, ...]) -> str:
    assignments = ", ".join(f"{quoted(column)} = ${number}" for number, column in enumerate(columns, 3))
    return f"UPDATE {table.name} SET {assignments} WHERE {table.key} = $1 AND version = $2"


async def insert(connection: PostgresConnection, table: KeyedTable, values: Mapping[str, Any]) -> int:
    """Insert a row and return its number. The number 0 requests a new one."""
    sql = _returning_sql(table, tuple(values))
    number: int = await connection.fetchval(sql, *values.values())
    return number


async def update(
    connection: PostgresConnection, table: KeyedTable, number: int, version: int, values: Mapping[str, Any]
) -> bool:
    """Update a row if it still has this version. Returns whether it had."""
    sql = _update_sql(table, tuple(values))
    return await connection.execute(sql, number, version, *values.values()) == "UPDATE 1"


async def put(connection: PostgresConnection, table: KeyedTable, values: Mapping[str, Any]) -> None:
    """Insert a row, or update it whatever its version."""
    await connection.execute(_put_sql(table, tuple(values)), *values.values())


async def delete(connection: PostgresConnection, table: KeyedTable, number: int, version: int) -> bool:
    """Delete a row if it still has this version. Returns whether it had."""
    sql = f"DELETE FROM {table.name} WHERE {table.key} = $1 AND version = $2"
    return await connection.execute(sql, number, version) == "DELETE 1"


async def remove(connection: PostgresConnection, table: KeyedTable, number: int) -> None:
    """Delete a row, if it exists, whatever its version."""
    await connection.execute(f"DELETE FROM {table.name} WHERE {table.key} = $1", number)
