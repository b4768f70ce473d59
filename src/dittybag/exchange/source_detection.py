"""Detection of the format of an import source. Each format is imported when it is used."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

from dittybag import files
from dittybag.domain.errors import SourceFailed, SourceNotFound, UnknownFormat
from dittybag.domain.imports import FORMATS
from dittybag.exchange.import_sources import FileSource

#: The start of a SQLite database.
_SQLITE: Final = b"SQLite format 3\0"

#: The module and class of each format, except of tasks, and of those that the
#: assembly opens: `database` and `library`.
_SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "json": ("json_file", "JsonSource"),
    "folder": ("export_folder", "FolderSource"),
    "csv": ("csv_file", "CsvSource"),
    "prompt-store": ("sqlite_reader", "PromptStoreSource"),
}
_LIBRARY_FILES: Final = (".md", ".markdown", ".prompty", ".yaml", ".yml")
_ARCHIVES: Final = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ")


def detect_format(path: str) -> str:
    """Return the format, a key of `FORMATS`. Raises `UnknownFormat`, `SourceNotFound` and `SourceFailed`."""
    if not os.path.exists(path):
        raise SourceNotFound(path, "no such file or folder")
    if os.path.isdir(path):
        from dittybag.exchange import export_folder, task_sources

        if export_folder.is_export_folder(path):
            return "folder"
        return task_sources.detect_task_folder(path) or "library"
    start = _read_start(path)
    if start.startswith(_SQLITE):
        from dittybag.exchange import sqlite_reader

        found = sqlite_reader.detect_database(path)
        if found is None:
            raise UnknownFormat(path, "it is a SQLite database of an unknown program")
        return found
    if start.startswith(_ARCHIVES):
        raise UnknownFormat(path, "it is an archive; unpack it first")
    return _detect_text(path, is_object=start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{")


def _detect_text(path: str, *, is_object: bool) -> str:
    """Return the format of a text; `is_object`: it may be one JSON object."""
    from dittybag.exchange import csv_file, json_file, task_sources

    if is_object and json_file.is_export_file(path):
        return "json"
    if not is_object and path.lower().endswith(_LIBRARY_FILES):
        return "library"
    if csv_file.is_prompt_table(path):
        return "csv"
    try:
        found = task_sources.detect_task_file(path)
    except SourceFailed as error:
        raise UnknownFormat(path, f"unknown format: {error.problem}") from error
    if found is None:
        raise UnknownFormat(path, "unknown format")
    return found


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
    module, name = _SOURCES[format]
    if format == "prompt-store":
        from dittybag.exchange import sqlite_reader

        if sqlite_reader.detect_database(path) != format:
            raise SourceFailed(path, f"it is not {FORMATS[format]}")
    source: Callable[[str], FileSource] = getattr(import_module(f"dittybag.exchange.{module}"), name)
    return source(path)
