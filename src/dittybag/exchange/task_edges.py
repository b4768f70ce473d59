"""The edges between imported tasks: which one waits for which."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from msgspec.structs import replace

from dittybag.domain.task_cycles import find_cycle
from dittybag.domain.tasks import Task
from dittybag.exchange.validated_source import ValidatedSource

#: A message names at most this many tasks of a cycle.
_MAX_NAMED: Final = 10


class TaskEdges:
    """Which task waits for which: for those that block it, and for its parts."""

    def __init__(self) -> None:
        self._waits: dict[int, list[int]] = {}

    def add(self, task: int, blocked_by: Iterable[int], parent: int | None) -> None:
        """Add the edges of a task."""
        for blocker in blocked_by:
            self._waits.setdefault(task, []).append(blocker)
        if parent is not None:
            self._waits.setdefault(parent, []).append(task)

    def cycle_problem(self, tasks: Collection[int] | None = None) -> str | None:
        """Return a sentence that names the tasks of a cycle, or `None`.

        `tasks`: only a cycle that one of these leads to.
        """
        *cycle, first = find_cycle(self._waits, tasks) or [0]
        if not cycle:
            return None
        named = [*map(str, cycle[:_MAX_NAMED]), *["..."] * (len(cycle) > _MAX_NAMED), str(first)]
        return f"these tasks would wait for each other: {' → '.join(named)}"


def edges_of(task: Task) -> set[int]:
    """Return the tasks to which a task refers."""
    return {*task.blocked_by, *(() if task.parent is None else (task.parent,))}


class SourceTasks:
    """The ids of the tasks of a source and the edges between them."""

    def __init__(self, source: ValidatedSource) -> None:
        self._source = source
        self._locations: dict[int, str] = {}
        #: The ids that several tasks have, so that an edge to them is not clear.
        self._ambiguous: set[int] = set()
        #: Whether each task has an id of its own.
        self.are_numbered = True
        self._edges = TaskEdges()
        self._removed = 0

    def add(self, location: str, task: Task) -> None:
        if not task.id:
            self.are_numbered = False
            return
        if self._locations.setdefault(task.id, location) != location:
            self.are_numbered = False
            self._ambiguous.add(task.id)
        self._edges.add(task.id, task.blocked_by, task.parent)

    def check(self) -> None:
        """Report a cycle to the source."""
        if (problem := self._edges.cycle_problem()) is not None:
            self._source.add_problem("tasks", problem)

    def without_missing(self, location: str, task: Task) -> Task:
        """Return a task without edges to tasks that the source does not contain."""
        edges = edges_of(task)
        for number in edges & self._ambiguous:
            problem = f"blocked_by or parent names task {number}, but several tasks have this id"
            self._source.add_problem(location, problem)
        missing = edges - self._locations.keys()
        if not missing:
            return task
        self._removed += len(missing)
        return replace(
            task,
            blocked_by=tuple(number for number in task.blocked_by if number not in missing),
            parent=None if task.parent in missing else task.parent,
        )

    def add_note(self) -> None:
        """Report how many edges were removed."""
        if self._removed:
            edges = "one reference" if self._removed == 1 else f"{self._removed:,} references"
            self._source.add_note(
                f"Removed {edges} in blocked_by and parent to tasks that are not in the source"
            )
