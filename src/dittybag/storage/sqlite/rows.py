"""Rows of a query, typed loosely: the tables are STRICT, so columns hold what the schema says."""

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
    """The only column of the only row; nothing if there is none."""
    return connection.execute(sql, bindings).get


def escape_like(text: str) -> str:
    """The text as a part of a LIKE pattern with `ESCAPE '\\'` in which every character stands for itself."""
    return text.translate(_ESCAPED)
