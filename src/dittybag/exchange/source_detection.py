"""Detection of the format of an import source."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Final

from dittybag import files
from dittybag.domain.errors import SourceFailed, SourceNotFound, UnknownFormat
from dittybag.domain.imports import FORMATS
from dittybag.exchange import csv_file, folder_reader, json_file, sqlite_reader
from dittybag.exchange.csv_file import CsvSource
from dittybag.exchange.folder_reader import FolderSource
from dittybag.exchange.foreign_stores import McpkgSource, PromptStoreSource, TaskManagerSource
from dittybag.exchange.import_sources import FileSource
from dittybag.exchange.json_file import JsonSource

_LIBRARY_ARCHIVES: Final = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ")

#: The source of each format, except of those that the assembly opens: `database` and `library`.
_SOURCES: Final[Mapping[str, Callable[[str], FileSource]]] = {
    "json": JsonSource,
    "folder": FolderSource,
    "csv": CsvSource,
    "prompt-store": PromptStoreSource,
    "mcpkg": McpkgSource,
    "task-manager": TaskManagerSource,
}
_LIBRARY_FILES: Final = (".md", ".markdown", ".prompt", ".prompty", ".yaml", ".yml")
_ARCHIVES: Final = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ")


def detect_format(path: str) -> str:
    """Return the format, a key of `FORMATS`. Raises `UnknownFormat`, `SourceNotFound` and `SourceFailed`."""
    if not os.path.exists(path):
        raise SourceNotFound(path, "no such file or folder")
    if os.path.isdir(path):
        return "folder" if folder_reader.is_export_folder(path) else "library"
    start = _read_start(path)
    if start.startswith(sqlite_reader.MAGIC):
        found = sqlite_reader.detect_database(path)
        if found is None:
            raise UnknownFormat(path, "it is a SQLite database of an unknown program")
        return found
    if start.startswith(_ARCHIVES):
        raise UnknownFormat(path, "it is an archive; unpack it first")
    if start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        if json_file.is_export_file(path):
            return "json"
        raise UnknownFormat(path, "it is JSON, but not a Dittybag export")
    if path.lower().endswith(_LIBRARY_FILES):
        return "library"
    if csv_file.is_prompt_table(path):
        return "csv"
    raise UnknownFormat(path, "unknown format")


def _read_start(path: str) -> bytes:
    if not os.path.isfile(path):
        raise UnknownFormat(path, "it is neither a file nor a folder")
    try:
        with open(path, "rb") as file:
            return file.read(4096)
    except OSError as error:
        raise SourceFailed(path, files.describe(error)) from error


def open_source(format: str, path: str) -> FileSource:
    """Open a file or folder in this format. Raises `SourceNotFound` and `SourceFailed`."""
    if not os.path.exists(path):
        raise SourceNotFound(path, "no such file or folder")
    if format in sqlite_reader.SIGNATURES and sqlite_reader.detect_database(path) != format:
        raise SourceFailed(path, f"it is not {FORMATS[format]}")
    return _SOURCES[format](path)
