"""Detection and reading of tasks of other programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Raw, Struct

from dittybag import files
from dittybag.domain.errors import SourceFailed, SourceNotFound, UnknownFormat
from dittybag.domain.imports import TASK_FORMATS
from dittybag.domain.task_drafts import TaskDraft
from dittybag.exchange.backlog_folder import read_backlog
from dittybag.exchange.beads_file import read_beads
from dittybag.exchange.draft_collector import DraftCollector
from dittybag.exchange.github_issues import read_github
from dittybag.exchange.task_csv import is_task_table, read_csv
from dittybag.exchange.task_input import TaskInput, read_input
from dittybag.exchange.task_master_file import is_task_master, read_task_master

_FILE_READERS: Final[Mapping[str, Callable[[TaskInput, DraftCollector], None]]] = {
    "csv": read_csv,
    "task-master": read_task_master,
    "beads": read_beads,
    "github": read_github,
}
#: Where a project has the tasks of each program; the first that exists is used. Those of Backlog.md are in
#: a folder.
_PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "task-master": (".taskmaster/tasks/tasks.json", "tasks/tasks.json", "tasks.json"),
    "beads": (".beads/issues.jsonl", ".beads/beads.jsonl", "issues.jsonl", "beads.jsonl"),
    "backlog": ("backlog/tasks", ".backlog/tasks", "tasks"),
}


class TasksRead(Struct, frozen=True):
    """The tasks of a source, with notes about what was left out or changed."""

    format: str
    drafts: list[TaskDraft]
    notes: list[str]


class _Probe(Struct):
    """The fields of an issue that tell GitHub and beads apart."""

    number: int | None = None
    id: int | str | None = None
    issues: Raw = Raw()


def read_tasks(path: str, format: str | None = None) -> TasksRead:
    """Read the tasks of a file or folder. Raises `SourceNotFound`, `SourceFailed` and `Invalid`.

    `format`: a key of `TASK_FORMATS` (default: detected).
    """
    if not os.path.exists(path):
        raise SourceNotFound(path, "no such file or folder")
    if not os.path.isdir(path):
        return read_task_file(read_input(path), format)
    found, place = _find_place(path, format)
    if found != "backlog":
        return read_task_file(read_input(place), found)
    collector = DraftCollector()
    try:
        read_backlog(place, collector)
    except OSError as error:
        raise SourceFailed(path, files.describe(error)) from error
    return _result(found, collector)


def read_task_file(source: TaskInput, format: str | None = None) -> TasksRead:
    """Read the tasks of a file. Raises `SourceFailed` and `UnknownFormat`."""
    chosen = format or _detect(source)
    if chosen not in _FILE_READERS:
        raise SourceFailed(source.name, f"it is not {TASK_FORMATS[chosen]}")
    collector = DraftCollector()
    _FILE_READERS[chosen](source, collector)
    return _result(chosen, collector)


def _result(format: str, collector: DraftCollector) -> TasksRead:
    # Making the drafts adds notes.
    drafts = collector.drafts()
    return TasksRead(format, drafts, collector.notes)


def _find_place(folder: str, format: str | None) -> tuple[str, str]:
    """Return the format of a folder, and its file or folder with tasks. Raises `UnknownFormat`."""
    found = {
        name: place
        for name, places in _PLACES.items()
        if format in (None, name) and (place := _existing(folder, name, places)) is not None
    }
    if len(found) > 1:
        raise UnknownFormat(folder, f"it has tasks of {' and '.join(found)}; choose one with --format")
    if not found:
        raise UnknownFormat(folder, "no tasks of a known program were found in this folder")
    return next(iter(found.items()))


def _existing(folder: str, format: str, places: tuple[str, ...]) -> str | None:
    for place in (os.path.join(folder, place) for place in places):
        if format != "backlog" and os.path.isfile(place):
            return place
        if format == "backlog" and os.path.isdir(place) and _has_task_files(place):
            return os.path.dirname(place)
    return None


def _has_task_files(folder: str) -> bool:
    with os.scandir(folder) as entries:
        return any(entry.name.endswith(".md") for entry in entries)


def _detect(source: TaskInput) -> str:
    if not source.is_json:
        if is_task_table(source):
            return "csv"
        raise UnknownFormat(source.name, "its format is unknown")
    if source.is_object and is_task_master(source):
        return "task-master"
    probes = source.items(_Probe)
    if probes and all(probe.number is not None for probe in probes):
        return "github"
    if any(isinstance(probe.id, str) or bytes(probe.issues) for probe in probes):
        return "beads"
    raise UnknownFormat(source.name, "it is JSON, but not of a known program")
