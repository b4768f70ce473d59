"""Exports, imports and dumps of workspaces for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import apsw

from dittybag.domain.imports import ImportOptions, ImportResult
from dittybag.exchange.export_data import export_workspace
from dittybag.exchange.export_folder import FolderSource, FolderWriter
from dittybag.exchange.import_sources import FileSource
from dittybag.exchange.json_file import JsonSource, JsonWriter
from dittybag.exchange.merge_import import import_source
from dittybag.services.workspace import Workspace
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.torture.sqlite_audit import SqliteAudit

ACTOR = "importer"


@asynccontextmanager
async def open_workspace(database: Path) -> AsyncIterator[Workspace]:
    """Open a database until the end of the block."""
    workspace = Workspace(SqliteStore(str(database)))
    try:
        yield workspace
    finally:
        await workspace.store.close()


async def export_json(database: Path, target: Path, *, project: str | None = None) -> bytes:
    """Export to a file. Returns its content."""
    async with open_workspace(database) as workspace:
        with target.open("wb") as file:
            await export_workspace(workspace.store, JsonWriter(file.write, project=project))
    return target.read_bytes()  # noqa: ASYNC240  # no other task is running


async def export_folder(database: Path, target: Path, *, project: str | None = None) -> int:
    """Export to a folder. Returns the number of changed files."""
    async with open_workspace(database) as workspace:
        with closing(FolderWriter(str(target), project=project)) as writer:
            await export_workspace(workspace.store, writer)
    return writer.changed


async def import_into(database: Path, source: Path | FileSource, **options: Any) -> ImportResult:
    """Import a file, a folder or a source."""
    async with open_workspace(database) as workspace:
        chosen = ImportOptions(actor=ACTOR, **options)
        return await import_source(workspace.store, _open_source(source), chosen)


def _open_source(source: Path | FileSource) -> FileSource:
    if not isinstance(source, Path):
        return source
    return FolderSource(str(source)) if source.is_dir() else JsonSource(str(source))


def rows(database: Path, sql: str) -> list[Any]:
    with closing(apsw.Connection(str(database))) as connection:
        return connection.execute(sql).fetchall()


def check_consistency(database: Path) -> None:
    """Check that the indexes and the change log match the tables."""
    with closing(SqliteAudit(database)) as audit:
        audit.check()


def dump_tables(database: Path) -> list[Any]:
    """Return the rows of all tables, including the change log and the index tables of tasks."""
    tables = ("projects", "prompts", "resources", "tasks", "changes", "contents", "open_tasks")
    return [
        *(rows(database, f"SELECT * FROM {table} ORDER BY 1") for table in tables),
        rows(database, "SELECT * FROM task_edges ORDER BY 1, 2, 3"),
    ]


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the content of all files in a folder, by path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in _walk(folder)}


def _walk(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and ".git/" not in str(path))
