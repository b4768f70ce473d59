"""The driver of the shared SQL for PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from dittybag.storage.postgres.postgres_connections import ConstraintError, PostgresConnection, quoted
from dittybag.storage.sql.sql_driver import Row

#: Characters that PostgreSQL cannot store, and rejects in queries.
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


class PostgresDriver:
    """See `dittybag.storage.sql.sql_driver.SqlDriver`.

    A query for a value that cannot be stored finds no rows.
    """

    constraint_error: type[Exception] = ConstraintError

    def __init__(self, connection: PostgresConnection) -> None:
        self.connection = connection
        self.wrote = False

    async def rows(self, sql: str, *values: Any) -> Sequence[Row]:
        return await self.connection.fetch(sql, *values) if all(map(is_storable, values)) else []

    async def row(self, sql: str, *values: Any) -> Row | None:
        if not all(map(is_storable, values)):
            return None
        row: Row | None = await self.connection.fetchrow(sql, *values)
        return row

    async def value(self, sql: str, *values: Any) -> Any:
        return await self.connection.fetchval(sql, *values) if all(map(is_storable, values)) else None

    async def run(self, sql: str, *values: Any) -> int:
        self.wrote = True
        status = await self.connection.execute(sql, *values)
        return int(status.rpartition(" ")[2])

    async def run_each(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        self.wrote = True
        await self.connection.executemany(sql, values)

    async def insert(self, table: str, key: str, values: Mapping[str, Any]) -> int:
        self.wrote = True
        build_sql = _insert_numbered_sql if key == "number" else _insert_counted_sql
        number: int = await self.connection.fetchval(build_sql(table, key, tuple(values)), *values.values())
        return number

    @staticmethod
    def list_value(items: Sequence[Any]) -> Sequence[Any]:
        return items

    @staticmethod
    def read_list(value: Iterable[str]) -> tuple[str, ...]:
        return tuple(value)

    def any_of(self, expression: str, placeholder: str) -> str:
        return f"{expression} = ANY({placeholder})"

    def has_item(self, column: str, placeholder: str) -> str:
        return f"{placeholder} = ANY({column})"

    def json_length(self, column: str) -> str:
        return f"json_array_length({column}::json)"

    def json_field(self, column: str, field: str) -> str:
        return f"{column}::json ->> '{field}'"

    def rows_with_either(self, table: str, first: str, second: str) -> tuple[str, str]:
        # An index for each: one for both does not exist, so OR would read the whole table.
        selects = " UNION ALL ".join(f"SELECT * FROM {table} WHERE {each}" for each in (first, second))
        return f"({selects}) AS {table}", "true"

    def unindexed(self, column: str) -> str:
        return column


def is_storable(value: Any) -> bool:
    """Whether the database can contain a value."""
    return not isinstance(value, str) or _UNSTORABLE.search(value) is None


@cache
def _insert_numbered_sql(table: str, key: str, columns: tuple[str, ...]) -> str:
    placeholders = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    names = ", ".join(map(quoted, columns))
    return f"INSERT INTO {table} ({names}) VALUES ({placeholders}) RETURNING {key}"


@cache
def _insert_counted_sql(table: str, key: str, columns: tuple[str, ...]) -> str:
    placeholders = [f"${number}" for number in range(1, len(columns) + 1)]
    given = placeholders[columns.index(key)]
    placeholders[columns.index(key)] = "(SELECT number FROM taken)"
    # A counter instead of a sequence: a rollback would leave a gap in a sequence.
    return f"""WITH taken AS (
        UPDATE counters SET last = greatest(last + ({given}::bigint = 0)::int, {given})
        WHERE name = '{table}'
        RETURNING CASE WHEN {given} = 0 THEN last ELSE {given} END AS number)
        INSERT INTO {table} ({", ".join(map(quoted, columns))}) VALUES ({", ".join(placeholders)})
        RETURNING {key}"""
