"""Query helpers. Rows are untyped; the tables are STRICT, so columns have the types of the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import apsw

_ESCAPED: Final = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})

Row: TypeAlias = tuple[Any, ...]
Bindings: TypeAlias = Sequence[Any] | Mapping[str, Any]


def all_rows(connection: apsw.Connection, sql: str, bindings: Bindings = ()) -> list[Row]:
    return connection.execute(sql, bindings).fetchall()


def first_row(connection: apsw.Connection, sql: str, bindings: Bindings = ()) -> Row | None:
    return connection.execute(sql, bindings).fetchone()


def value(connection: apsw.Connection, sql: str, bindings: Bindings = ()) -> Any:
    """Return the only column of the only row; None if there is no row."""
    return connection.execute(sql, bindings).get


def escape_like(text: str) -> str:
    """Escape a text for a LIKE pattern with `ESCAPE '\\'`."""
    return text.translate(_ESCAPED)
