"""Insert, update and delete of a single row in any table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import apsw
from msgspec import Struct


class KeyedTable(Struct, frozen=True):
    """A table whose rows have a numeric key and a version."""

    name: str
    #: The name of the key column.
    key: str


@lru_cache
def _insert_sql(table: KeyedTable, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


@lru_cache
def _update_sql(table: KeyedTable, columns: tuple[str, ...]) -> str:
    assignments = ", ".join(f"{column} = ?" for column in columns)
    return f"UPDATE {table.name} SET {assignments} WHERE {table.key} = ? AND version = ?"


def insert(connection: apsw.Connection, table: KeyedTable, values: Mapping[str, Any]) -> int:
    """Insert a row and return its number. The number 0 requests a new one."""
    row = {**values, table.key: values[table.key] or None}
    connection.execute(_insert_sql(table, tuple(row)), tuple(row.values()))
    return connection.last_insert_rowid()


def update(
    connection: apsw.Connection, table: KeyedTable, number: int, version: int, values: Mapping[str, Any]
) -> bool:
    """Update a row if it still has this version. Returns whether it had."""
    connection.execute(_update_sql(table, tuple(values)), (*values.values(), number, version))
    return connection.changes() == 1


def put(connection: apsw.Connection, table: KeyedTable, values: Mapping[str, Any]) -> None:
    """Insert a row, or update it whatever its version."""
    assignments = ", ".join(f"{column} = excluded.{column}" for column in values)
    sql = f"{_insert_sql(table, tuple(values))} ON CONFLICT ({table.key}) DO UPDATE SET {assignments}"
    connection.execute(sql, tuple(values.values()))


def delete(connection: apsw.Connection, table: KeyedTable, number: int, version: int) -> bool:
    """Delete a row if it still has this version. Returns whether it had."""
    connection.execute(f"DELETE FROM {table.name} WHERE {table.key} = ? AND version = ?", (number, version))
    return connection.changes() == 1


def remove(connection: apsw.Connection, table: KeyedTable, number: int) -> None:
    """Delete a row, if it exists, whatever its version."""
    connection.execute(f"DELETE FROM {table.name} WHERE {table.key} = ?", (number,))
