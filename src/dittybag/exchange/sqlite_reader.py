"""SQLite databases of other programs, which are only ever read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

import apsw

from dittybag.domain.errors import SourceFailed
from dittybag.exchange.import_sources import SOURCE_BYTES

MAGIC: Final = b"SQLite format 3\0"

#: The mark of Dittybag's own databases: "Ditt".
_OURS: Final = 0x44697474

#: No value in them has more bytes.
_VALUE_BYTES: Final = 16 * 1024 * 1024
_COLUMNS: Final = 200


@contextmanager
def opened(path: str) -> Iterator[apsw.Connection]:
    """A connection that changes nothing: not the file, nor what lies beside it. Raises `SourceFailed`."""
    try:
        if os.path.getsize(path) > SOURCE_BYTES:  # noqa: PTH202
            raise SourceFailed(path, f"it is larger than {SOURCE_BYTES // 1024**3} GiB")
        connection = apsw.Connection(_address(path), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    except apsw.Error as error:
        raise SourceFailed(path, _words(error)) from error
    except OSError as error:
        raise SourceFailed(path, (error.strerror or "unknown reason").lower()) from error
    try:
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, _VALUE_BYTES)
        connection.limit(apsw.SQLITE_LIMIT_COLUMN, _COLUMNS)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.set_busy_timeout(5000)
        yield connection
    except apsw.Error as error:
        raise SourceFailed(path, _words(error)) from error
    except UnicodeDecodeError as error:
        raise SourceFailed(path, "there is text in it that is not UTF-8") from error
    finally:
        connection.close()


def _address(path: str) -> str:
    """Where nothing is left to be written into the database, SQLite need not look beside it."""
    unwritten = any(_size(path + ending) for ending in ("-wal", "-journal"))
    return f"file:{quote(os.path.abspath(path))}?{'mode=ro' if unwritten else 'immutable=1'}"  # noqa: PTH100


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return 0


def _words(error: apsw.Error) -> str:
    if isinstance(error, apsw.NotADBError):
        return "it is not a SQLite database"
    if isinstance(error, apsw.CorruptError):
        return "it is damaged"
    if isinstance(error, apsw.TooBigError):
        return f"there is a value in it of more than {_VALUE_BYTES // 1024**2} MiB"
    return f"{error}; if another program is using it, close that first"


def tables(connection: apsw.Connection) -> dict[str, set[str]]:
    """The columns of every table, by their names in lower case. Views and other inventions do not count."""
    sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
    found = {}
    for (name,) in connection.execute(sql).fetchall():
        columns = connection.execute("SELECT lower(name) FROM pragma_table_xinfo(?)", (name,)).fetchall()
        found[str(name).lower()] = {str(column) for (column,) in columns}
    return found


def rows(connection: apsw.Connection, sql: str) -> Iterator[dict[str, Any]]:
    """The rows of a query by the names of their columns."""
    cursor = connection.execute(sql)
    names: list[str] | None = None
    for row in cursor:
        if names is None:
            names = [column[0].lower() for column in cursor.get_description()]
        yield dict(zip(names, row, strict=True))


def text(value: Any) -> str:
    """A value as text, whatever type it has in a database that takes any."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value)


def number(value: Any) -> int:
    """A value as a number, 0 if it is none."""
    return value if isinstance(value, int) and 0 < value < 2**53 else 0


#: A kind of database, and the tables and columns by which it is known.
_SIGNS: Final[dict[str, dict[str, set[str]]]] = {
    "mcpkg": {
        "projects": {"id", "name"},
        "prompts": {"id", "project_id", "name", "content"},
        "resources": {"id", "project_id", "name", "uri", "content"},
    },
    "prompt-store": {"prompts": {"id", "title", "content"}, "prompt_tags": {"prompt_id", "tag_name"}},
    "task-manager": {"tasks": {"id", "user_id", "title", "priority", "energy", "time_estimate"}},
}


def recognised(path: str) -> str | None:
    """Whose database this is; nothing if nobody's that is known. Raises `SourceFailed`."""
    with opened(path) as connection:
        if connection.pragma("application_id") == _OURS:
            return "database"
        found = tables(connection)
    for name, signs in _SIGNS.items():
        if all(columns <= found.get(table, set()) for table, columns in signs.items()):
            return name
    return None
