"""What an exchange takes and gives: where things go, where they come from, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from dittybag.domain.changes import KINDS, Change, Kind
from dittybag.domain.errors import Conflict, Problem
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task

T = TypeVar("T")

OnConflict = Literal["fail", "skip", "replace", "rename"]

#: Where something stands in its source, and what it is or what is wrong with it.
Found: TypeAlias = tuple[str, T | Problem]

#: Called with what is being done and how far it is.
Tell = Callable[[str, int], None]

#: So many things are read in one go.
PAGE: Final = 100


class Sink(Protocol):
    """Whoever writes down what there is: one kind after the other, each in the order of creation."""

    def project(self, project: Project) -> None: ...

    def prompt(self, prompt: Prompt) -> None: ...

    def resource(self, resource: Resource, content: bytes) -> None: ...

    def task(self, task: Task) -> None: ...

    def content(self, sha256: str, content: bytes) -> None: ...

    def change(self, change: Change) -> None: ...


class Source(Protocol):
    """What is to be taken in. See `dittybag.exchange.import_sources.Source`."""

    @property
    def own(self) -> bool: ...

    @property
    def has_history(self) -> bool: ...

    def projects(self) -> Iterable[Found[Project]]: ...

    def prompts(self) -> Iterable[Found[Prompt]]: ...

    def resources(self) -> Iterable[Found[tuple[Resource, bytes]]]: ...

    def tasks(self) -> Iterable[Found[Task]]: ...

    def contents(self) -> Iterable[Found[bytes]]: ...

    def changes(self) -> Iterable[Found[Change]]: ...


class Renamed(Struct, frozen=True):
    """A thing that is called otherwise here than in its source."""

    kind: str
    old: str
    new: str


class Intake(Struct, kw_only=True):
    """What came of an import."""

    created: dict[Kind, int]
    replaced: dict[Kind, int]
    #: Things that were here already, or that were to be left as they are here.
    skipped: dict[Kind, int]
    renamed: list[Renamed]
    conflicts: list[Conflict]
    #: Whether this workspace is now what that one was.
    exact: bool = False
    #: How many changes of the past were taken in.
    changes: int = 0


def nothing() -> Intake:
    """What has come of an import before it has begun."""
    return Intake(
        created=dict.fromkeys(KINDS, 0),
        replaced=dict.fromkeys(KINDS, 0),
        skipped=dict.fromkeys(KINDS, 0),
        renamed=[],
        conflicts=[],
    )


class Progress:
    """How far it is."""

    def __init__(self, tell: Tell | None) -> None:
        self.counts = {"prompts": 0, "resources": 0, "tasks": 0, "changes": 0}
        self._tell = tell

    def begin(self, what: str) -> None:
        self.counts[what] = 0

    def step(self, what: str) -> None:
        self.counts[what] += 1
        if self._tell is not None and self.counts[what] % PAGE == 0:
            self._tell(what, self.counts[what])
