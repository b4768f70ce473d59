"""Sources: what is to be taken in, read from files of any kind."""

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

#: A file, or all the files of a folder, have at most so many bytes.
SOURCE_BYTES: Final = 2 * 1024**3

#: Where something stands in its source, and what it is or what is wrong with it.
Found: TypeAlias = tuple[str, T | Problem]


class Source:
    """What a file or a folder holds. Everything may be asked for more than once.

    A thing names its project by the number that this source gives it, and none by 0. What a source does not
    know is empty or 0: a name, a title, an id, a time.
    """

    #: Whether these are the ids, numbers and times of a workspace.
    own = False
    #: Whether it knows the changes that led here.
    has_history = False

    def __init__(self) -> None:
        self._fitted: dict[tuple[str, str], tuple[str, str]] = {}
        self._notes: dict[str, None] = {}

    def projects(self) -> Iterable[Found[Project]]:
        return ()

    def prompts(self) -> Iterable[Found[Prompt]]:
        return ()

    def resources(self) -> Iterable[Found[tuple[Resource, bytes]]]:
        """Resources with their contents; hashes and sizes are not filled in."""
        return ()

    def tasks(self) -> Iterable[Found[Task]]:
        return ()

    def contents(self) -> Iterable[Found[bytes]]:
        """Contents of resources in the past."""
        return ()

    def changes(self) -> Iterable[Found[Change]]:
        """The log. `before` and `project` are not filled in."""
        return ()

    def close(self) -> None:
        """Let go of the files."""

    @property
    def fitted(self) -> Sequence[tuple[str, str, str]]:
        """Kind, old and new of every name that had to be made to fit."""
        return [(kind, *names) for (kind, _), names in self._fitted.items()]

    @property
    def notes(self) -> Sequence[str]:
        """What else somebody should know, in sentences."""
        return list(self._notes)

    def note(self, text: str) -> None:
        self._notes[text] = None

    def fits(self, kind: str, place: str, old: str, new: str) -> str:
        """Remember that a name was made to fit, if it was; the new one."""
        if old != new:
            self._fitted[kind, place] = (old, new)
        return new
