"""Detection and reading of tasks of other programs."""

from __future__ import annotations

import os
import re
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
    "task-csv": read_csv,
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
#: A file of Backlog.md is named `task-7 - Title.md`. Prompts may be in a folder `tasks` too.
_TASK_FILE: Final = re.compile(r"[\w-]+-\d[\d.]*( - .*)?\.md", re.DOTALL)
_MARKDOWN_FILE: Final = re.compile(r".*\.md", re.DOTALL)


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


def read_tasks(path: str, format: str) -> TasksRead:
    """Read the tasks of a file or folder in a format of `TASK_FORMATS`.

    Raises `SourceNotFound`, `SourceFailed` and `Invalid`.
    """
    if not os.path.exists(path):
        raise SourceNotFound(path, "no such file or folder")
    place = _place(path, format) if os.path.isdir(path) else path
    if place is None or (format == "backlog") != os.path.isdir(place):
        raise SourceFailed(path, f"it is not {TASK_FORMATS[format]}")
    collector = DraftCollector()
    if format == "backlog":
        try:
            read_backlog(place, collector)
        except OSError as error:
            raise SourceFailed(path, files.describe(error)) from error
    else:
        _FILE_READERS[format](read_input(place), collector)
    # Making the drafts adds notes.
    drafts = collector.drafts()
    return TasksRead(format, drafts, collector.notes)


def detect_task_folder(folder: str) -> str | None:
    """Return the format of the tasks in a project's folder. Raises `UnknownFormat` if there are several."""
    found = [name for name in _PLACES if _place(folder, name, files=_TASK_FILE) is not None]
    if len(found) > 1:
        raise UnknownFormat(folder, f"it has tasks of {' and '.join(found)}; choose one with --as")
    return found[0] if found else None


def detect_task_file(path: str) -> str | None:
    """Return the format of a file of tasks. Raises `SourceFailed`, also for JSON that is not valid."""
    source = read_input(path)
    if not source.is_json:
        return "task-csv" if is_task_table(source) else None
    if source.is_object and is_task_master(source):
        return "task-master"
    probes = source.items(_Probe)
    if probes and all(probe.number is not None for probe in probes):
        return "github"
    return "beads" if any(isinstance(probe.id, str) or bytes(probe.issues) for probe in probes) else None


def _place(folder: str, format: str, files: re.Pattern[str] = _MARKDOWN_FILE) -> str | None:
    """Return the file of a folder with tasks in this format, or the folder of Backlog.md.

    `files`: the names that files of Backlog.md have.
    """
    for place in (os.path.join(folder, place) for place in _PLACES.get(format, ())):
        if format != "backlog" and os.path.isfile(place):
            return place
        if format == "backlog" and os.path.isdir(place) and any(map(files.fullmatch, os.listdir(place))):
            return os.path.dirname(place)
    return None
