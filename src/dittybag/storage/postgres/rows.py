"""Rows of a query, typed loosely: columns hold what the schema says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from dittybag.storage.postgres.connections import Connection

_ESCAPED: Final = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})

#: No text in a database has these in it, and PostgreSQL does not even want to hear of them.
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")

Row: TypeAlias = Sequence[Any]


class Bindings:
    """The values of a query that is put together, each in exchange for its placeholder."""

    def __init__(self, *values: Any) -> None:
        self.values = list(values)

    def add(self, value: Any) -> str:
        self.values.append(value)
        return f"${len(self.values)}"


async def all_rows(connection: Connection, sql: str, *values: Any) -> list[Row]:
    """The rows for which all of the values fit: none, if one of them is a text that cannot be there."""
    return await connection.fetch(sql, *values) if all(map(is_storable, values)) else []


async def first_row(connection: Connection, sql: str, *values: Any) -> Row | None:
    row: Row | None = await connection.fetchrow(sql, *values) if all(map(is_storable, values)) else None
    return row


async def value(connection: Connection, sql: str, *values: Any) -> Any:
    """The only column of the only row; nothing if there is none."""
    return await connection.fetchval(sql, *values) if all(map(is_storable, values)) else None


def is_storable(value: Any) -> bool:
    """Whether a value can be in a database at all."""
    return not isinstance(value, str) or _UNSTORABLE.search(value) is None


def escape_like(text: str) -> str:
    """The text as a part of a LIKE pattern in which every character stands for itself."""
    return text.translate(_ESCAPED)


def ascii_lower(text: str) -> str:
    """As `lower` of the collation "C" has it: only the letters of ASCII."""
    return text.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")
