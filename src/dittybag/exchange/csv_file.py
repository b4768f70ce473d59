"""Prompts in a table of text: one on a line, with a header that says what is in which column."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from typing import Final

from dittybag.domain.errors import Problem, SourceFailed
from dittybag.domain.prompts import CONTENT_BYTES, Prompt
from dittybag.exchange.import_sources import SOURCE_BYTES, Found, Source
from dittybag.exchange.sanitise import fitted_description, fitted_name, fitted_tag, fitted_title

#: What columns are called, in the order in which they are looked for.
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "name": ("name", "slug", "key"),
    "title": ("title", "act"),
    "content": ("content", "prompt", "text", "body"),
    "description": ("description",),
    "tags": ("tags",),
}
_HEADER_CHARACTERS: Final = 10_000


def _header(line: str) -> tuple[str, dict[str, int]]:
    """What separates the columns, and where each is; no columns if this is no such table."""
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


def is_table(path: str) -> bool:
    """Whether a file begins like a table of prompts."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # noqa: PTH123
            return bool(_header(file.readline(_HEADER_CHARACTERS))[1])
    except (OSError, UnicodeDecodeError, csv.Error):
        return False


class CsvSource(Source):
    """The prompts of a table."""

    def __init__(self, path: str) -> None:
        """Raises `SourceFailed` if there is no header that says which column is what."""
        super().__init__()
        self._path = path
        if not is_table(path):
            problem = "its first line must name the columns: act,prompt or title,content,description,tags"
            raise SourceFailed(path, problem)
        if os.path.getsize(path) > SOURCE_BYTES:  # noqa: PTH202
            raise SourceFailed(path, f"it is larger than {SOURCE_BYTES // 1024**3} GiB")

    def prompts(self) -> Iterator[Found[Prompt]]:
        # A content that is too large is told as such; one that never ends is not read to its end.
        csv.field_size_limit(CONTENT_BYTES * 2)
        with open(self._path, encoding="utf-8-sig", newline="") as file:  # noqa: PTH123
            separator, columns = _header(file.readline(_HEADER_CHARACTERS))
            reader = csv.reader(file, delimiter=separator, strict=True)
            try:
                for cells in reader:
                    if any(cell.strip() for cell in cells):
                        yield self._prompt(f"line {reader.line_num + 1}", cells, columns)
            except csv.Error as error:
                yield f"line {reader.line_num + 1}", Problem("", str(error))
            except UnicodeDecodeError as error:
                raise SourceFailed(self._path, "it is not UTF-8") from error

    def _prompt(self, place: str, cells: list[str], columns: Mapping[str, int]) -> Found[Prompt]:
        values = {name: cells[at] if at < len(cells) else "" for name, at in columns.items()}
        if len(cells) <= columns["content"]:
            return place, Problem("content", "there are too few columns in it")
        name, title = values.get("name", "").strip(), values.get("title", "").strip()
        prompt = Prompt(
            number=0,
            id="",
            project=0,
            name=self.fits("prompt", place, name, fitted_name(name, "")) if name else "",
            title=self.fits("prompt", f"{place} title", title, fitted_title(title)) if title else "",
            description=fitted_description(values.get("description")),
            content=values["content"],
            tags=_tags(values.get("tags", "")),
            created_at=0,
            updated_at=0,
        )
        return place, prompt


def _tags(cell: str) -> tuple[str, ...]:
    """Tags between commas, semicolons or bars, with or without brackets and quotes around them."""
    for other in "[]\"'":
        cell = cell.replace(other, "")
    for other in ";|":
        cell = cell.replace(other, ",")
    return tuple(tag for part in cell.split(",") if (tag := fitted_tag(part.strip())))
