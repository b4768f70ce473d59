"""Databases with the schema of a prompt-store server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

_STAMPS = "created_at TEXT DEFAULT (datetime()), updated_at TEXT DEFAULT (datetime())"

PROMPT_STORE = f"""
PRAGMA journal_mode = WAL;
CREATE TABLE prompts (id TEXT PRIMARY KEY, title TEXT UNIQUE, content TEXT, {_STAMPS});
CREATE TABLE tags (name TEXT PRIMARY KEY);
CREATE TABLE prompt_tags (prompt_id TEXT, tag_name TEXT, PRIMARY KEY (prompt_id, tag_name));
"""


def create_database(path: Path, schema: str, **tables: list[dict[str, Any]]) -> apsw.Connection:
    """Create a database with these rows. Returns the open connection."""
    connection = apsw.Connection(str(path))
    connection.execute(schema).fetchall()
    for table, rows in tables.items():
        for row in rows:
            placeholders = ", ".join("?" * len(row))
            connection.execute(
                f"INSERT INTO {table} ({', '.join(row)}) VALUES ({placeholders})", tuple(row.values())
            )
    return connection
