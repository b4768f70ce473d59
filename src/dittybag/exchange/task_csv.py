"""Reads CSV files of tasks, whose header names the columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from io import StringIO
from typing import Final

from dittybag.domain.errors import SourceFailed
from dittybag.domain.text import one_line
from dittybag.exchange.draft_collector import DraftCollector, ForeignTask, parse_status, with_edges
from dittybag.exchange.file_times import parse_time
from dittybag.exchange.task_input import MAX_TASKS, TaskInput, too_many

#: The accepted names of each column; the first match is used.
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "title": ("title", "task", "name", "summary", "subject"),
    "id": ("id", "key", "number", "issue_key"),
    "notes": ("notes", "description", "body", "details"),
    "priority": ("priority",),
    "due": ("due", "due_date", "deadline"),
    "status": ("status", "state"),
    "assignee": ("assignee", "owner", "assigned_to"),
    "labels": ("labels", "tags", "label"),
    "parent": ("parent", "parent_id"),
    "blocked_by": ("blocked_by", "depends_on", "dependencies"),
    "time_estimate": ("estimate", "time_estimate"),
    "created": ("created", "created_at", "created_date"),
    "completed": ("completed", "completed_at", "closed_at", "done"),
    "links": ("links", "link", "url"),
}
_SEPARATORS: Final = (",", ";", "\t")
_HEADER_CHARACTERS: Final = 10_000
_NOT_WORDS: Final = re.compile(r"[\s_-]+")


def is_task_table(source: TaskInput) -> bool:
    """Return whether the first line is the header of a table of tasks."""
    return _header(source) is not None


def read_csv(source: TaskInput, into: DraftCollector) -> None:
    """Collect the tasks of a file. Raises `SourceFailed`."""
    found = _header(source)
    if found is None:
        raise SourceFailed(source.name, "the first line must name the columns, one of which is title")
    separator, names = found
    columns = {
        column: names.index(next(word for word in words if word in names))
        for column, words in _COLUMNS.items()
        if any(word in names for word in words)
    }
    unknown = [name for at, name in enumerate(names) if at not in columns.values() and name]
    if "project" in unknown:
        unknown.remove("project")
        into.note("the column project was left out; use --project")
    for name in unknown:
        into.note(f"the column '{one_line(name, 60)}' is unknown and was left out")
    _TableReader(source.name, columns, len(names), into).read(_rows(source, separator))


def _header(source: TaskInput) -> tuple[str, list[str]] | None:
    """Return the separator and the names of the columns."""
    line = source.text[:_HEADER_CHARACTERS].lstrip("\r\n").partition("\n")[0].rstrip("\r")
    for separator in _SEPARATORS:
        try:
            cells = next(csv.reader([line], delimiter=separator), [])
        except csv.Error:
            continue
        names = [_NOT_WORDS.sub("_", cell.strip().lower()) for cell in cells]
        if any(name in names for name in _COLUMNS["title"]):
            return separator, names
    return None


def _rows(source: TaskInput, separator: str) -> Iterator[list[str]]:
    """Yield the rows below the header. Raises `SourceFailed`."""
    csv.field_size_limit(len(source.text) + 1)
    reader = csv.reader(StringIO(source.text.lstrip("\r\n"), newline=""), delimiter=separator, strict=True)
    try:
        next(reader)
        for count, cells in enumerate((cells for cells in reader if any(map(str.strip, cells))), 1):
            if count > MAX_TASKS:
                raise SourceFailed(source.name, too_many())
            yield cells
    except csv.Error as error:
        raise SourceFailed(source.name, f"line {reader.line_num}: {error}") from error


class _TableReader:
    """Collects the tasks of a table."""

    def __init__(self, name: str, columns: Mapping[str, int], width: int, into: DraftCollector) -> None:
        """`width`: the number of columns."""
        self._origin = f"csv:{name}:"
        self._columns = columns
        self._width = width
        self._into = into
        self._titles: dict[str, int] = {}

    def read(self, rows: Iterator[list[str]]) -> None:
        tasks = [self._to_task(cells) for cells in rows]
        ids = {task.id for task in tasks}
        by_title = {task.title: task.id for task in tasks if self._titles[task.title] == 1}
        for task in tasks:
            # A task may be named by its title.
            self._into.add(with_edges(task, lambda name: name if name in ids else by_title.get(name, name)))

    def _to_task(self, cells: Sequence[str]) -> ForeignTask:
        values = {name: cells[at].strip() if at < len(cells) else "" for name, at in self._columns.items()}
        get = values.get
        self._titles[values["title"]] = self._titles.get(values["title"], 0) + 1
        key = get("id") or self._key(values["title"])
        if any(cells[self._width :]):
            self._into.note("cells without a column were left out", key)
        title, completed = values["title"], get("completed", "")
        status = get("status", "")
        if parse_time(completed) is None:
            # Some tables say only whether it is completed.
            status = status or ("done" if parse_status(completed) == "done" else "")
            completed = ""
        elif "status" not in values:
            status = "done"
        return ForeignTask(
            id=key,
            origin=self._origin,
            title=title,
            notes=get("notes", ""),
            priority=get("priority", ""),
            time_estimate=get("time_estimate", ""),
            due=get("due", ""),
            status=status,
            created=get("created", ""),
            completed=completed,
            assignee=get("assignee", ""),
            labels=_split(get("labels", "")),
            links=_split(get("links", "")),
            parent=get("parent", ""),
            blocked_by=_split(get("blocked_by", "")),
        )

    def _key(self, title: str) -> str:
        """Return an id for a task without one: that of the same title is the same in a later file."""
        return sha256(f"{self._titles[title]}:{title}".encode()).hexdigest()[:12]


def _split(cell: str) -> list[str]:
    return [word.strip() for word in re.split("[,;]", cell) if word.strip()]
