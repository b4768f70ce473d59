"""The port between the shared SQL and a connection to a database.

Placeholders are $1, $2 and so on. A statement may use them in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

#: Rows are untyped; columns have the types of the schema.
Row: TypeAlias = Sequence[Any]

#: The largest integer of both databases.
MAX_INTEGER: Final = (1 << 63) - 1

_ESCAPED: Final = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})


class SqlDriver(Protocol):
    """Runs statements on one connection. The coroutines for SQLite never suspend."""

    #: Whether a statement has changed rows. The writer resets this.
    wrote: bool
    #: The exception for a violated unique, foreign-key or check constraint.
    constraint_error: type[Exception]

    async def rows(self, sql: str, *values: Any) -> Sequence[Row]: ...

    async def row(self, sql: str, *values: Any) -> Row | None: ...

    async def value(self, sql: str, *values: Any) -> Any:
        """Return the only column of the only row; None if there is no row."""
        ...

    async def run(self, sql: str, *values: Any) -> int:
        """Run a statement that changes rows, and return their number."""
        ...

    async def run_each(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """Run a statement that changes rows with each of these values."""
        ...

    async def insert(self, table: str, key: str, values: Mapping[str, Any]) -> int:
        """Insert a row and return its number, in the column `key`. The number 0 requests a new one."""
        ...

    def list_value(self, items: Sequence[Any]) -> Any:
        """Return a list as a bound value, for a column with a list or for `any_of`."""
        ...

    def read_list(self, value: Any) -> tuple[str, ...]:
        """Return the list of texts in a column."""
        ...

    def any_of(self, expression: str, placeholder: str) -> str:
        """SQL for whether a number is in a bound list."""
        ...

    def has_item(self, column: str, placeholder: str) -> str:
        """SQL for whether the list of texts in a column has a text."""
        ...

    def json_length(self, column: str) -> str:
        """SQL for the number of items of the JSON array in a column."""
        ...

    def json_field(self, column: str, field: str) -> str:
        """SQL for a field of a JSON object, as text."""
        ...

    def rows_with_either(self, table: str, first: str, second: str) -> tuple[str, str]:
        """SQL for the rows with one of two conditions, which never have both: a source and a condition."""
        ...

    def unindexed(self, column: str) -> str:
        """SQL for a column that keeps the database from using an index where a scan is faster."""
        ...


class Bindings:
    """The bound values of a statement that is built step by step."""

    def __init__(self, *values: Any) -> None:
        self.values = list(values)

    def add(self, value: Any) -> str:
        """Add a value and return its placeholder."""
        self.values.append(value)
        return f"${len(self.values)}"

    def page(self, limit: int | None, offset: int = 0) -> str:
        """Return the SQL clause for a page; `None` for no limit."""
        return f"LIMIT {self.add(MAX_INTEGER if limit is None else limit)} OFFSET {self.add(offset)}"


def from_nearer_end(order: str, limit: int, offset: int, total: int) -> tuple[str, int, int]:
    """Return the order, limit and offset that find the rows of a page from the nearer end of a list.

    A database reads all rows before a page. `order`: the terms of ORDER BY.
    """
    after = total - offset - limit
    if after >= offset:
        return order, limit, offset
    return _reverse(order), max(min(limit, total - offset), 0), max(after, 0)


def _reverse(order: str) -> str:
    terms = order.split(", ")
    return ", ".join(
        term.removesuffix(" DESC") if term.endswith(" DESC") else f"{term} DESC" for term in terms
    )


def is_number(value: int) -> bool:
    """Whether a value can be the number of a row."""
    return 0 < value <= MAX_INTEGER


def contains_pattern(text: str) -> str:
    """Return the LIKE pattern, with `ESCAPE '\\'`, for texts that contain this one."""
    return f"%{escape_like(text)}%"


def escape_like(text: str) -> str:
    """Escape a text for a LIKE pattern with `ESCAPE '\\'`."""
    return text.translate(_ESCAPED)


def ascii_lower(text: str) -> str:
    """Convert ASCII letters to lower case, like `lower` in both databases."""
    return text.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")
