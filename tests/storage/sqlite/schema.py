"""The schema that all migrations lead to, as one file to read: `python -m tests.storage.sqlite.schema`."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import apsw

import dittybag.storage.sqlite
from dittybag.storage.sqlite.migrations import migrate

FILE = Path(dittybag.storage.sqlite.__file__).parent / "schema.sql"

_HEADER = "-- What all migrations lead to. Made by: python -m tests.storage.sqlite.schema"

#: Tables by name, each followed by its indexes and triggers. Shadow tables are the full-text search's own.
_OBJECTS = """
SELECT object.sql FROM sqlite_schema AS object
JOIN pragma_table_list AS owner ON owner.schema = 'main' AND owner.name = object.tbl_name
WHERE object.sql IS NOT NULL AND object.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND owner.type <> 'shadow'
ORDER BY object.tbl_name, object.type <> 'table', object.type, object.name
"""


def schema_of(path: Path) -> str:
    """The objects of a database that are our own, in a stable order."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        objects = [sql for (sql,) in connection.execute(_OBJECTS)]
    finally:
        connection.close()
    return "\n\n".join([_HEADER, *(f"{sql.rstrip()};" for sql in objects)]) + "\n"


def migrated_schema() -> str:
    """The schema of a new database."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "new.db"
        migrate(str(path))
        return schema_of(path)


if __name__ == "__main__":
    FILE.write_text(migrated_schema(), encoding="utf-8")
