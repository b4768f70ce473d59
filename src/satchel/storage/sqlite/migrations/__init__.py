"""Numbered steps from an empty file to the newest schema; each is committed with its record."""

from __future__ import annotations

import os
import re
import time
from typing import Final

import apsw

from satchel.domain.errors import StorageForeign, StorageTooNew
from satchel.storage.sqlite.connections import APPLICATION_ID, connect, translated

_FILE: Final = re.compile(r"(\d{4})_(\w+)\.sql")

_RECORDS: Final = """
CREATE TABLE IF NOT EXISTS migrations (
    number     INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT
"""

#: The newest schema, so that opening a database need not look into the folder.
NEWEST: Final = 1


def steps() -> list[tuple[int, str, str]]:
    """Number, name and SQL of every migration."""
    folder = os.path.dirname(__file__)  # noqa: PTH120  # pathlib is slow to import
    found = (match for name in os.listdir(folder) if (match := _FILE.fullmatch(name)))  # noqa: PTH208
    result = []
    for match in sorted(found, key=lambda match: match[0]):
        with open(os.path.join(folder, match[0]), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            result.append((int(match[1]), match[2], file.read()))
    return result


def is_current(connection: apsw.Connection, path: str) -> bool:
    """Whether the schema is the newest. Refuses files of newer Satchels and of other programs."""
    with translated(path):
        found = int(connection.pragma("user_version"))
        if found == NEWEST and connection.pragma("application_id") == APPLICATION_ID:
            return True
        application = int(connection.pragma("application_id"))
        used = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if application not in (0, APPLICATION_ID) or (application == 0 and (used or found)):
        raise StorageForeign(path)
    if found > NEWEST:
        raise StorageTooNew(path, found=found, known=NEWEST)
    return False


def migrate(path: str) -> None:
    """Bring a file, new or old, to the newest schema. Any number of processes may do so at once."""
    connection = connect(path, writable=True)
    try:
        with translated(path):
            connection.pragma("journal_mode", "wal")
        for number, name, sql in steps():
            with translated(path):
                connection.execute("BEGIN IMMEDIATE")
                try:
                    if not is_current(connection, path) and connection.pragma("user_version") < number:
                        connection.execute(_RECORDS)
                        connection.execute(sql)
                        connection.execute(
                            "INSERT INTO migrations VALUES (?, ?, ?)",
                            (number, name, time.time_ns() // 1000),
                        )
                        connection.pragma("application_id", APPLICATION_ID)
                        connection.pragma("user_version", number)
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
    finally:
        connection.close()
