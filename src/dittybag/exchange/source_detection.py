"""Recognising: what a file or a folder holds, from what is in it."""

from __future__ import annotations

import os
from typing import Final

from dittybag.domain.errors import Invalid, Problem, SourceFailed, SourceNotFound
from dittybag.exchange import csv_file, folder_reader, json_file, sqlite_reader
from dittybag.exchange.csv_file import CsvSource
from dittybag.exchange.folder_reader import FolderSource
from dittybag.exchange.foreign_stores import Mcpkg, PromptStore, TaskManager
from dittybag.exchange.import_sources import Source
from dittybag.exchange.json_file import JsonSource

#: What can be taken in. `database` and `library` are read elsewhere.
FORMATS: Final = {
    "json": "a JSON file that dittybag export has written",
    "folder": "a folder that dittybag export has written",
    "database": "a database of Dittybag's",
    "prompt-store": "a SQLite database of prompt-store",
    "mcpkg": "a SQLite database of mcpkg",
    "task-manager": "a SQLite database of the task manager",
    "csv": "a table with the columns act,prompt or title,content",
    "library": "a folder or file of prompts, in any format that libraries have",
}

_LIBRARY_FILES: Final = (".md", ".markdown", ".prompt", ".prompty", ".yaml", ".yml")
_ARCHIVES: Final = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ")


def recognised(path: str) -> str:
    """One of `FORMATS`. Raises `Invalid` for anything else, `SourceNotFound` and `SourceFailed`."""
    if not os.path.exists(path):  # noqa: PTH110
        raise SourceNotFound(path, "there is no such file or folder")
    if os.path.isdir(path):  # noqa: PTH112
        return "folder" if folder_reader.is_ours(path) else "library"
    beginning = _beginning(path)
    if beginning.startswith(sqlite_reader.MAGIC):
        found = sqlite_reader.recognised(path)
        if found is None:
            raise _unknown(path, "it is a database of a program that is not known here")
        return found
    if beginning.startswith(_ARCHIVES):
        raise _unknown(path, "it is an archive: unpack it first")
    if beginning.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        if json_file.is_ours(path):
            return "json"
        raise _unknown(path, "it is JSON, but not an export of Dittybag's")
    if path.lower().endswith(_LIBRARY_FILES):
        return "library"
    if csv_file.is_table(path):
        return "csv"
    raise _unknown(path, "nothing is known that looks like this")


def _beginning(path: str) -> bytes:
    if not os.path.isfile(path):  # noqa: PTH113
        raise _unknown(path, "it is neither a file nor a folder")
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(4096)
    except OSError as error:
        raise SourceFailed(path, (error.strerror or "unknown reason").lower()) from error


def _unknown(path: str, problem: str) -> Invalid:
    return Invalid([Problem("source", f"{path} cannot be imported: {problem}")])


def source(format: str, path: str) -> Source:
    """What is in a file or a folder of this format. Raises `SourceFailed`."""
    if not os.path.exists(path):  # noqa: PTH110
        raise SourceNotFound(path, "there is no such file or folder")
    if format == "json":
        return JsonSource(path)
    if format == "folder":
        return FolderSource(path)
    if format == "csv":
        return CsvSource(path)
    found = sqlite_reader.recognised(path)
    if found != format:
        raise SourceFailed(path, f"it is not {FORMATS[format]}")
    if format == "prompt-store":
        return PromptStore(path)
    return Mcpkg(path) if format == "mcpkg" else TaskManager(path)
