"""Query helpers. Rows are untyped; columns have the types of the schema."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from dittybag.storage.postgres.connections import PostgresConnection

_ESCAPED: Final = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})

#: Characters that PostgreSQL cannot store, and rejects in queries.
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")

Row: TypeAlias = Sequence[Any]


class Bindings:
    """The bound values of a query that is built step by step."""

    def __init__(self, *values: Any) -> None:
        self.values = list(values)

    def add(self, value: Any) -> str:
        self.values.append(value)
        return f"${len(self.values)}"


async def all_rows(connection: PostgresConnection, sql: str, *values: Any) -> list[Row]:
    """Return the rows of a query; none if a value cannot be in the database."""
    return await connection.fetch(sql, *values) if all(map(is_storable, values)) else []


async def first_row(connection: PostgresConnection, sql: str, *values: Any) -> Row | None:
    row: Row | None = await connection.fetchrow(sql, *values) if all(map(is_storable, values)) else None
    return row


async def value(connection: PostgresConnection, sql: str, *values: Any) -> Any:
    """Return the only column of the only row; None if there is no row."""
    return await connection.fetchval(sql, *values) if all(map(is_storable, values)) else None


def is_storable(value: Any) -> bool:
    """Whether the database can contain a value."""
    return not isinstance(value, str) or _UNSTORABLE.search(value) is None


def escape_like(text: str) -> str:
    """Escape a text for a LIKE pattern."""
    return text.translate(_ESCAPED)


def ascii_lower(text: str) -> str:
    """Convert ASCII letters to lower case, like `lower` in the collation "C"."""
    return text.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")
