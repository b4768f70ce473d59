"""Types of imports and exports: sinks, sources, results and progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from dittybag.domain.changes import Change
from dittybag.domain.entities import ENTITY_TYPES, Kind
from dittybag.domain.errors import Conflict, Problem
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task

T = TypeVar("T")

OnConflict = Literal["fail", "skip", "replace", "rename"]

#: A location in a source, and the entity there or the problem with it.
SourceEntry: TypeAlias = tuple[str, T | Problem]

#: Called with a kind of data, in the plural, and the number processed so far.
ProgressCallback = Callable[[str, int], None]

#: Number of entities or changes to read at a time.
PAGE: Final = 100


class ExportSink(Protocol):
    """Writes an export. It receives one kind after the other, each in the order of creation."""

    def project(self, project: Project) -> None: ...

    def prompt(self, prompt: Prompt) -> None: ...

    def resource(self, resource: Resource, content: bytes) -> None: ...

    def task(self, task: Task) -> None: ...

    def content(self, sha256: str, content: bytes) -> None: ...

    def change(self, change: Change) -> None: ...


class ImportSource(Protocol):
    """The data to import. `dittybag.exchange.import_sources.FileSource` describes each member."""

    @property
    def is_export(self) -> bool: ...

    @property
    def has_history(self) -> bool: ...

    def projects(self) -> Iterable[SourceEntry[Project]]: ...

    def prompts(self) -> Iterable[SourceEntry[Prompt]]: ...

    def resources(self) -> Iterable[SourceEntry[tuple[Resource, bytes]]]: ...

    def tasks(self) -> Iterable[SourceEntry[Task]]: ...

    def contents(self) -> Iterable[SourceEntry[bytes]]: ...

    def changes(self) -> Iterable[SourceEntry[Change]]: ...


class RenamedEntity(Struct, frozen=True):
    """An entity that was renamed during the import."""

    kind: str
    old: str
    new: str


class ImportResult(Struct, kw_only=True):
    """The result of an import."""

    created: dict[Kind, int]
    replaced: dict[Kind, int]
    #: Entities that already exist, or that conflict with existing ones and were not imported.
    skipped: dict[Kind, int]
    renamed: list[RenamedEntity]
    conflicts: list[Conflict]
    #: Whether the workspace is now an exact copy of the exported one.
    exact: bool = False
    #: The number of imported changes of the history.
    changes: int = 0


def empty_result() -> ImportResult:
    """Return a result with all counts at zero."""
    return ImportResult(
        created=dict.fromkeys(ENTITY_TYPES, 0),
        replaced=dict.fromkeys(ENTITY_TYPES, 0),
        skipped=dict.fromkeys(ENTITY_TYPES, 0),
        renamed=[],
        conflicts=[],
    )


class ProgressCounter:
    """Counts what was processed, and reports it to a callback."""

    def __init__(self, on_progress: ProgressCallback | None) -> None:
        self.counts = {"prompts": 0, "resources": 0, "tasks": 0, "changes": 0}
        self._on_progress = on_progress

    def begin(self, section: str) -> None:
        self.counts[section] = 0

    def step(self, section: str) -> None:
        self.counts[section] += 1
        if self._on_progress is not None and self.counts[section] % PAGE == 0:
            self._on_progress(section, self.counts[section])
