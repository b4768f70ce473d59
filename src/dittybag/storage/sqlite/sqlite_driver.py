"""The driver of the shared SQL for SQLite. Its coroutines never suspend."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final, TypeVar

import apsw
import msgspec

from dittybag.storage.sql.sql_driver import Row

T = TypeVar("T")

_decode_texts: Final = msgspec.json.Decoder(tuple[str, ...]).decode


def run_synchronously(awaitable: Awaitable[T]) -> T:
    """Run a coroutine that never suspends, without an event loop."""
    steps = awaitable.__await__()
    try:
        next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("work on SQLite must not await anything that suspends")


class SqliteDriver:
    """See `dittybag.storage.sql.sql_driver.SqlDriver`.

    The numbers of placeholders need a question mark. After a dollar sign, SQLite would take them for names.
    """

    constraint_error: type[Exception] = apsw.ConstraintError

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.wrote = False

    async def rows(self, sql: str, *values: Any) -> Sequence[Row]:
        return self.connection.execute(_numbered(sql), values).fetchall()

    async def row(self, sql: str, *values: Any) -> Row | None:
        return self.connection.execute(_numbered(sql), values).fetchone()

    async def value(self, sql: str, *values: Any) -> Any:
        return self.connection.execute(_numbered(sql), values).get

    async def run(self, sql: str, *values: Any) -> int:
        self.wrote = True
        self.connection.execute(_numbered(sql), values)
        return self.connection.changes()

    async def run_each(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        self.wrote = True
        self.connection.executemany(_numbered(sql), values)

    async def insert(self, table: str, key: str, values: Mapping[str, Any]) -> int:
        self.wrote = True
        row = {**values, key: values[key] or None}
        self.connection.execute(_insert_sql(table, tuple(row)), tuple(row.values()))
        return self.connection.last_insert_rowid()

    @staticmethod
    def list_value(items: Sequence[Any]) -> str:
        return msgspec.json.encode(items).decode() if items else "[]"

    @staticmethod
    def read_list(value: str) -> tuple[str, ...]:
        return () if value == "[]" else _decode_texts(value)

    def any_of(self, expression: str, placeholder: str) -> str:
        return f"{expression} IN (SELECT value FROM json_each({placeholder}))"

    def has_item(self, column: str, placeholder: str) -> str:
        return f"EXISTS (SELECT 1 FROM json_each({column}) WHERE value = {placeholder})"

    def json_length(self, column: str) -> str:
        return f"json_array_length({column})"

    def json_field(self, column: str, field: str) -> str:
        return f"{column} ->> '{field}'"

    def rows_with_either(self, table: str, first: str, second: str) -> tuple[str, str]:
        return table, f"({first} OR {second})"

    def unindexed(self, column: str) -> str:
        return f"+{column}"


@lru_cache(512)
def _numbered(sql: str) -> str:
    return sql.replace("$", "?")


@cache
def _insert_sql(table: str, columns: tuple[str, ...]) -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    return f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"
