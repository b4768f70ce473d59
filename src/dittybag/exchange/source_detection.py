"""Detection of the format of an import source."""

from __future__ import annotations

import os
from typing import Final

from dittybag.domain.errors import Invalid, Problem, SourceFailed, SourceNotFound
from dittybag.exchange import csv_file, folder_reader, json_file, sqlite_reader
from dittybag.exchange.csv_file import CsvSource
from dittybag.exchange.folder_reader import FolderSource
from dittybag.exchange.foreign_stores import McpkgSource, PromptStoreSource, TaskManagerSource
from dittybag.exchange.import_sources import FileSource
from dittybag.exchange.json_file import JsonSource

#: The import formats. The assembly opens `database` and `library`.
FORMATS: Final = {
    "json": "a JSON file written by dittybag export",
    "folder": "a folder written by dittybag export",
    "database": "a Dittybag database",
    "prompt-store": "a prompt-store database (SQLite)",
    "mcpkg": "an mcpkg database (SQLite)",
    "task-manager": "a task manager database (SQLite)",
    "csv": "a CSV file with the columns act,prompt or title,content",
    "library": "a folder or file of prompts in any library format",
}

_LIBRARY_FILES: Final = (".md", ".markdown", ".prompt", ".prompty", ".yaml", ".yml")
_ARCHIVES: Final = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ")


def detect_format(path: str) -> str:
    """Return the format, a key of `FORMATS`. Raises `Invalid`, `SourceNotFound` and `SourceFailed`."""
    if not os.path.exists(path):  # noqa: PTH110
        raise SourceNotFound(path, "no such file or folder")
    if os.path.isdir(path):  # noqa: PTH112
        return "folder" if folder_reader.is_export_folder(path) else "library"
    start = _read_start(path)
    if start.startswith(sqlite_reader.MAGIC):
        found = sqlite_reader.detect_database(path)
        if found is None:
            raise _cannot_import(path, "it is a SQLite database of an unknown program")
        return found
    if start.startswith(_ARCHIVES):
        raise _cannot_import(path, "it is an archive; unpack it first")
    if start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        if json_file.is_export_file(path):
            return "json"
        raise _cannot_import(path, "it is JSON, but not a Dittybag export")
    if path.lower().endswith(_LIBRARY_FILES):
        return "library"
    if csv_file.is_prompt_table(path):
        return "csv"
    raise _cannot_import(path, "unknown format")


def _read_start(path: str) -> bytes:
    if not os.path.isfile(path):  # noqa: PTH113
        raise _cannot_import(path, "it is neither a file nor a folder")
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(4096)
    except OSError as error:
        raise SourceFailed(path, (error.strerror or "unknown reason").lower()) from error


def _cannot_import(path: str, problem: str) -> Invalid:
    return Invalid([Problem("source", f"{path} cannot be imported: {problem}")])


def open_source(format: str, path: str) -> FileSource:
    """Open a file or folder in this format. Raises `SourceNotFound` and `SourceFailed`."""
    if not os.path.exists(path):  # noqa: PTH110
        raise SourceNotFound(path, "no such file or folder")
    if format == "json":
        return JsonSource(path)
    if format == "folder":
        return FolderSource(path)
    if format == "csv":
        return CsvSource(path)
    found = sqlite_reader.detect_database(path)
    if found != format:
        raise SourceFailed(path, f"it is not {FORMATS[format]}")
    if format == "prompt-store":
        return PromptStoreSource(path)
    return McpkgSource(path) if format == "mcpkg" else TaskManagerSource(path)
