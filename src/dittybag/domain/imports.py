"""Imports: their formats, options and results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec
from msgspec import Struct

from dittybag.domain.entities import ENTITY_TYPES, Kind
from dittybag.domain.errors import Conflict
from dittybag.domain.projects import DEFAULT_PROJECT

#: The formats of tasks of other programs, with descriptions for people.
TASK_FORMATS: Final[Mapping[str, str]] = {
    "task-csv": "a CSV file of tasks, whose header has the column title",
    "task-master": "a tasks.json of task-master",
    "beads": "a JSONL export of beads, or the output of bd list --json",
    "backlog": "a folder of Backlog.md, or a project with one",
    "github": "issues of GitHub: the output of gh issue list --json, or of the REST API",
}

#: The import formats.
FORMATS: Final[Mapping[str, str]] = {
    "json": "a JSON file written by dittybag export",
    "folder": "a folder written by dittybag export",
    "database": "a Dittybag database",
    "prompt-store": "a prompt-store database (SQLite)",
    "csv": "a CSV file with the columns act,prompt or title,content",
    "library": "a folder or file of prompts in any library format",
    **TASK_FORMATS,
}

#: What to do with entities whose name, title or URI is already in use.
OnConflict = Literal["fail", "skip", "replace", "rename"]


class ImportOptions(Struct, frozen=True, kw_only=True):
    """How a source is imported."""

    actor: str
    #: The project to import everything into; `None` for the projects that the source names.
    project: str | None = None
    #: The project of entities for which the source names none.
    default_project: str = DEFAULT_PROJECT
    on_conflict: OnConflict = "fail"
    #: Change nothing, and report conflicts in the result.
    dry_run: bool = False


class RenamedEntity(Struct, frozen=True):
    """An entity that was renamed during the import."""

    kind: str
    old: str
    new: str


def _zero_counts() -> dict[Kind, int]:
    return dict.fromkeys(ENTITY_TYPES, 0)


class ImportResult(Struct, kw_only=True):
    """The result of an import."""

    created: dict[Kind, int] = msgspec.field(default_factory=_zero_counts)
    replaced: dict[Kind, int] = msgspec.field(default_factory=_zero_counts)
    #: Entities that already exist, or that conflict with existing ones and were not imported.
    skipped: dict[Kind, int] = msgspec.field(default_factory=_zero_counts)
    renamed: list[RenamedEntity] = []
    conflicts: list[Conflict] = []
    #: Adjustments of the imported entities, as sentences.
    notes: list[str] = []
    format: str = ""
