"""CSV files of prompts, whose header names the columns."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Mapping
from typing import Final

from dittybag.domain.entities import Kind
from dittybag.domain.errors import Problem, SourceFailed
from dittybag.domain.prompts import CONTENT_BYTES, Prompt
from dittybag.exchange.import_sources import (
    SOURCE_BYTES,
    TOO_LARGE,
    FileSource,
    SourceEntity,
    SourceEntry,
    entity_of,
)
from dittybag.exchange.sanitise import sanitise_description, sanitise_name, sanitise_tag, sanitise_title

#: The accepted names of each column; the first match is used.
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "name": ("name", "slug", "key"),
    "title": ("title", "act"),
    "content": ("content", "prompt", "text", "body"),
    "description": ("description",),
    "tags": ("tags",),
}
_HEADER_CHARACTERS: Final = 10_000


def _parse_header(line: str) -> tuple[str, dict[str, int]]:
    """Return the separator and the index of each column; no columns if the line is not a valid header."""
    for separator in (",", ";", "\t"):
        names = [name.strip().lower() for name in next(csv.reader([line], delimiter=separator), [])]
        found = {
            column: names.index(next(word for word in words if word in names))
            for column, words in _COLUMNS.items()
            if any(word in names for word in words)
        }
        if "content" in found and ("name" in found or "title" in found):
            return separator, found
    return ",", {}


def is_prompt_table(path: str) -> bool:
    """Return whether the first line of a file is the header of a prompt table."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return bool(_parse_header(file.readline(_HEADER_CHARACTERS))[1])
    except (OSError, UnicodeDecodeError, csv.Error):
        return False


class CsvSource(FileSource):
    """The prompts of a CSV file."""

    def __init__(self, path: str) -> None:
        """Raises `SourceFailed` if the header is not valid or the file is too large."""
        super().__init__()
        self._path = path
        if not is_prompt_table(path):
            problem = "the first line must name the columns: act,prompt or title,content,description,tags"
            raise SourceFailed(path, problem)
        if os.path.getsize(path) > SOURCE_BYTES:
            raise SourceFailed(path, TOO_LARGE)

    def entities(self, kind: Kind) -> Iterator[SourceEntry[SourceEntity]]:
        if kind != "prompt":
            return
        # Twice the limit: validation reports an oversize content, and the reader stops at a much larger one.
        csv.field_size_limit(CONTENT_BYTES * 2)
        with open(self._path, encoding="utf-8-sig", newline="") as file:
            separator, columns = _parse_header(file.readline(_HEADER_CHARACTERS))
            reader = csv.reader(file, delimiter=separator, strict=True)
            try:
                for cells in reader:
                    if any(cell.strip() for cell in cells):
                        yield self._prompt(f"line {reader.line_num + 1}", cells, columns)
            except csv.Error as error:
                yield f"line {reader.line_num + 1}", Problem("", str(error))
            except UnicodeDecodeError as error:
                raise SourceFailed(self._path, "it is not UTF-8") from error

    def _prompt(
        self, location: str, cells: list[str], columns: Mapping[str, int]
    ) -> SourceEntry[SourceEntity]:
        values = {name: cells[at] if at < len(cells) else "" for name, at in columns.items()}
        if len(cells) <= columns["content"]:
            return location, Problem("content", "too few columns")
        name, title = values.get("name", "").strip(), values.get("title", "").strip()
        prompt = entity_of(
            Prompt,
            name=self.record_rename("prompt", location, name, sanitise_name(name, "")),
            title=self.record_rename("prompt", f"{location} title", title, sanitise_title(title)),
            description=sanitise_description(values.get("description")),
            content=values["content"],
            tags=_tags(values.get("tags", "")),
        )
        return location, SourceEntity(prompt)


def _tags(cell: str) -> tuple[str, ...]:
    """Parse tags that are separated by commas, semicolons or bars. Brackets and quotes are ignored."""
    words = re.split("[,;|]", re.sub(r"[\[\]\"']", "", cell))
    return tuple(tag for word in words if (tag := sanitise_tag(word.strip())))
