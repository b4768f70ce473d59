"""Workspaces for tests of exchange: filled, exported, imported and looked at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from dittybag.exchange.folder_reader import FolderSource
from dittybag.exchange.folder_writer import FolderWriter
from dittybag.exchange.json_file import JsonSource, JsonWriter
from dittybag.services.exchange import Exchange, Intake, Source
from dittybag.storage.sqlite.store import SqliteStore

ACTOR = "importer"


async def to_json(database: Path, target: Path, *, project: str | None = None, history: bool = True) -> bytes:
    """Export to a file; its bytes."""
    store = SqliteStore(str(database))
    try:
        with target.open("wb") as file:
            writer = JsonWriter(file.write, project=project, history=history)
            await Exchange(store).export(writer, project=project, history=history)
            writer.end()
    finally:
        await store.close()
    return target.read_bytes()  # noqa: ASYNC240  # nobody else waits


async def to_folder(
    database: Path, target: Path, *, project: str | None = None, history: bool = False
) -> int:
    """Export to a folder; how many files were not like that before."""
    store = SqliteStore(str(database))
    writer = FolderWriter(str(target), project=project, history=history)
    try:
        await Exchange(store).export(writer, project=project, history=history)
        writer.end()
    finally:
        writer.close()
        await store.close()
    return writer.changed


async def take(database: Path, source: Path | Source, **options: Any) -> Intake:
    """Import a file, a folder or a source."""
    store = SqliteStore(str(database))
    try:
        return await Exchange(store).take(_opened(source), actor=ACTOR, **options)
    finally:
        await store.close()


def _opened(source: Path | Source) -> Source:
    if not isinstance(source, Path):
        return source
    return FolderSource(str(source)) if source.is_dir() else JsonSource(str(source))


def rows(database: Path, sql: str) -> list[Any]:
    connection = apsw.Connection(str(database))
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def everything(database: Path) -> list[Any]:
    """All that is stored, the log included."""
    tables = ("projects", "prompts", "resources", "tasks", "changes", "contents")
    return [rows(database, f"SELECT * FROM {table} ORDER BY 1") for table in tables]


def files(folder: Path) -> dict[str, bytes]:
    """All files of a folder, by their paths."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in _walk(folder)}


def _walk(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and ".git/" not in str(path))
