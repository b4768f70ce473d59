"""The base class of import sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, TypeVar

from dittybag.domain.changes import Change
from dittybag.domain.errors import Problem
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task

T = TypeVar("T")

#: Maximum size of a source file in bytes.
SOURCE_BYTES: Final = 2 * 1024**3

#: A location in a source, and the entity there or the problem with it.
SourceEntry: TypeAlias = tuple[str, T | Problem]


class FileSource:
    """The content of a file or folder to import. Each method can be called repeatedly.

    The project of an entity is an id within this source; 0 if it has none. Names, titles, ids and times that
    the source does not contain are empty or 0.
    """

    #: Whether it is a Dittybag export, with the ids, numbers and times of the exported workspace.
    is_export = False
    #: Whether it has a change history.
    has_history = False

    def __init__(self) -> None:
        self._renamed: dict[tuple[str, str], tuple[str, str]] = {}
        self._notes: dict[str, None] = {}

    def projects(self) -> Iterable[SourceEntry[Project]]:
        return ()

    def prompts(self) -> Iterable[SourceEntry[Prompt]]:
        return ()

    def resources(self) -> Iterable[SourceEntry[tuple[Resource, bytes]]]:
        """Resources with their contents. Hashes and sizes are not set."""
        return ()

    def tasks(self) -> Iterable[SourceEntry[Task]]:
        return ()

    def contents(self) -> Iterable[SourceEntry[bytes]]:
        """Earlier contents of resources."""
        return ()

    def changes(self) -> Iterable[SourceEntry[Change]]:
        """The change log. `before` and `project` are not set."""
        return ()

    def close(self) -> None:
        """Close the files."""

    @property
    def renamed(self) -> Sequence[tuple[str, str, str]]:
        """The kind, old value and new value of each name that was adjusted to the rules of Dittybag."""
        return [(kind, *names) for (kind, _), names in self._renamed.items()]

    @property
    def notes(self) -> Sequence[str]:
        """Other adjustments, as sentences for the import report."""
        return list(self._notes)

    def add_note(self, text: str) -> None:
        self._notes[text] = None

    def record_rename(self, kind: str, location: str, old: str, new: str) -> str:
        """Record an adjusted name, if `new` differs from `old`. Returns `new`."""
        if old != new:
            self._renamed[kind, location] = (old, new)
        return new
