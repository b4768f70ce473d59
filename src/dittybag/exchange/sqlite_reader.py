"""SQLite databases as import sources: those of other programs are only read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

import apsw

from dittybag import files
from dittybag.domain.entities import Kind
from dittybag.domain.errors import SourceFailed
from dittybag.domain.prompts import Prompt
from dittybag.exchange.file_times import parse_time
from dittybag.exchange.import_rules import UUID
from dittybag.exchange.import_sources import (
    SOURCE_BYTES,
    TOO_LARGE,
    FileSource,
    SourceEntity,
    SourceEntry,
    entity_of,
)
from dittybag.exchange.sanitise import sanitise_tag, sanitise_title

#: The application ids of Dittybag databases, now and before the first release: opening one of those says so.
_APPLICATION_IDS: Final = (0x44626167, 0x44697474)

#: Maximum size of a value in bytes.
_VALUE_BYTES: Final = 16 * 1024 * 1024
_COLUMNS: Final = 200


@contextmanager
def open_read_only(path: str) -> Iterator[apsw.Connection]:
    """Open a database without changing it or creating files beside it. Raises `SourceFailed`."""
    try:
        if os.path.getsize(path) > SOURCE_BYTES:
            raise SourceFailed(path, TOO_LARGE)
        connection = apsw.Connection(_uri(path), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    except apsw.Error as error:
        raise SourceFailed(path, _describe_error(error)) from error
    except OSError as error:
        raise SourceFailed(path, files.describe(error)) from error
    try:
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, _VALUE_BYTES)
        connection.limit(apsw.SQLITE_LIMIT_COLUMN, _COLUMNS)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.set_busy_timeout(5000)
        yield connection
    except apsw.Error as error:
        raise SourceFailed(path, _describe_error(error)) from error
    except UnicodeDecodeError as error:
        raise SourceFailed(path, "it contains text that is not UTF-8") from error
    finally:
        connection.close()


def _uri(path: str) -> str:
    """Return the SQLite URI. Without a WAL or journal, `immutable` keeps SQLite from creating files."""
    has_journal = any(_size(path + ending) for ending in ("-wal", "-journal"))
    return f"file:{quote(os.path.abspath(path))}?{'mode=ro' if has_journal else 'immutable=1'}"


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _describe_error(error: apsw.Error) -> str:
    if isinstance(error, apsw.NotADBError):
        return "it is not a SQLite database"
    if isinstance(error, apsw.CorruptError):
        return "it is damaged"
    if isinstance(error, apsw.TooBigError):
        return f"it contains a value larger than {_VALUE_BYTES // 1024**2} MiB"
    return f"{error}; if another program uses the database, close that program first"


def _tables(connection: apsw.Connection) -> dict[str, set[str]]:
    """Return the columns of each table, with names in lower case. Views and virtual tables are omitted."""
    sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
    found = {}
    for (name,) in connection.execute(sql).fetchall():
        columns = connection.execute("SELECT lower(name) FROM pragma_table_xinfo(?)", (name,)).fetchall()
        found[str(name).lower()] = {str(column) for (column,) in columns}
    return found


def rows(connection: apsw.Connection, sql: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a query as dictionaries."""
    cursor = connection.execute(sql)
    names: list[str] | None = None
    for row in cursor:
        if names is None:
            names = [column[0].lower() for column in cursor.get_description()]
        yield dict(zip(names, row, strict=True))


def as_text(value: Any) -> str:
    """Return a value as text. SQLite columns may contain values of any type."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value)


#: The tables and columns that identify a prompt-store database.
_PROMPT_STORE: Final = {"prompts": {"id", "title", "content"}, "prompt_tags": {"prompt_id", "tag_name"}}


def detect_database(path: str) -> str | None:
    """Return the format of a database, or `None` if it is unknown. Raises `SourceFailed`."""
    with open_read_only(path) as connection:
        if connection.pragma("application_id") in _APPLICATION_IDS:
            return "database"
        found = _tables(connection)
    is_prompt_store = all(columns <= found.get(table, set()) for table, columns in _PROMPT_STORE.items())
    return "prompt-store" if is_prompt_store else None


# prompt-store


class PromptStoreSource(FileSource):
    """A prompt-store database: prompts with titles and tags."""

    def __init__(self, path: str) -> None:
        """Read the tags. Raises `SourceFailed`."""
        super().__init__()
        self._path = path
        self._tags: dict[str, list[str]] = {}
        for row in self._rows("SELECT prompt_id, tag_name FROM prompt_tags ORDER BY tag_name"):
            if tag := sanitise_tag(as_text(row["tag_name"])):
                self._tags.setdefault(as_text(row["prompt_id"]), []).append(tag)

    def entities(self, kind: Kind) -> Iterator[SourceEntry[SourceEntity]]:
        if kind != "prompt":
            return
        for row in self._rows("SELECT * FROM prompts ORDER BY rowid"):
            location = f"prompt {as_text(row['id'])}"
            yield location, self._prompt(location, row)

    def _rows(self, sql: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a query. Raises `SourceFailed`."""
        with open_read_only(self._path) as connection:
            yield from rows(connection, sql)

    def _prompt(self, location: str, row: dict[str, Any]) -> SourceEntity:
        key, title = as_text(row["id"]), as_text(row["title"])
        created = parse_time(as_text(row.get("created_at"))) or 0
        prompt = entity_of(
            Prompt,
            id=key.lower() if UUID.fullmatch(key.lower()) else "",
            title=self.record_rename("prompt", location, title, sanitise_title(title)),
            content=as_text(row["content"]),
            tags=tuple(self._tags.get(key, ())),
            created_at=created,
            updated_at=parse_time(as_text(row.get("updated_at"))) or created,
        )
        return SourceEntity(prompt)
