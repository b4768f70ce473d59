"""Adds the tasks of a source to a workspace, with the edges between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.entities import type_of
from dittybag.domain.imports import ImportResult
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import Project
from dittybag.domain.task_cycles import find_cycle
from dittybag.domain.tasks import Task
from dittybag.exchange.export_data import all_entities
from dittybag.exchange.validated_source import ValidatedSource

#: Edited fields with ids, which differ between workspaces.
_ID_FIELDS: Final = ("blocked_by", "parent")


#: `blocked_by` and `parent`.
_Edges: TypeAlias = tuple[tuple[int, ...], int | None]


class _TaskOutline(Struct, frozen=True):
    """What is needed of a task to compare it and to map its edges."""

    id: int
    #: A key that is equal for equal tasks, whatever their ids and edges. It is short: there may be many.
    fingerprint: bytes
    blocked_by: tuple[int, ...]
    parent: int | None


class TaskMerge:
    """Adds the tasks of a source. Tasks that exist are skipped.

    Tasks of an export keep their numbers in a new workspace; otherwise they get new ones.
    """

    def __init__(
        self,
        source: ValidatedSource,
        transaction: Transaction,
        result: ImportResult,
        target_project: Callable[[int], Awaitable[Project]],
    ) -> None:
        """`target_project`: returns the target project for a project id of the source."""
        self._source = source
        self._transaction = transaction
        self._result = result
        self._target_project = target_project
        self._tasks = SourceTasks(source)
        #: The new id, or that of the existing equal task, by the id in the source.
        self.ids: dict[int, int] = {}
        self._keep_numbers = False
        #: The edges of the workspace with the imported tasks.
        self._edges = TaskEdges()

    async def run(self, *, keep_numbers: bool) -> None:
        """`keep_numbers`: the workspace has never had tasks."""
        for location, task, _ in self._source.entities("task"):
            self._tasks.add(location, task)
        self._keep_numbers = keep_numbers and self._tasks.are_numbered
        self._tasks.check()
        if self._source.is_valid:
            await self._merge()

    async def _merge(self) -> None:
        outlines = await self._outlines()
        matches = await self._find_matches(outlines)
        created: list[tuple[int, _TaskOutline, _Edges]] = []
        for (_, given, _), outline, match in zip(
            self._source.entities("task"), outlines, matches, strict=True
        ):
            if match is not None:
                self._result.skipped["task"] += 1
                continue
            edges = self._mapped(outline)
            number = await self._create(await self._in_target(given), *edges)
            self.ids[outline.id] = number
            created.append((number, outline, edges))
        for number, outline, edges in created:
            if self._mapped(outline) != edges:
                await self._add_edges(number, *self._mapped(outline))
            self._edges.add(number, *self._mapped(outline))
        self._tasks.add_note()
        if (problem := self._edges.cycle_problem([number for number, _, _ in created])) is not None:
            self._source.add_problem("tasks", f"with the tasks of this workspace, {problem}")

    async def _outlines(self) -> list[_TaskOutline]:
        """Return the outlines of the tasks of the source, in their target projects."""
        return [
            _outline(self._tasks.without_missing(location, await self._in_target(task)))
            for location, task, _ in self._source.entities("task")
        ]

    async def _find_matches(self, given: Sequence[_TaskOutline]) -> list[int | None]:
        """Return the id of the existing equal task, or `None`, for each task of the source."""
        known = [_outline(task) async for task in all_entities(self._transaction, "task")]
        fingerprints = {outline.id: outline.fingerprint for outline in known}
        unmatched: dict[bytes, list[int]] = {}
        # Equal tasks are taken from the end of their list.
        for outline in reversed(known):
            unmatched.setdefault(_with_edges(outline, fingerprints), []).append(outline.id)
            self._edges.add(outline.id, outline.blocked_by, outline.parent)
        fingerprints = {outline.id: outline.fingerprint for outline in given}
        matches: list[int | None] = []
        for outline in given:
            equal = unmatched.get(_with_edges(outline, fingerprints))
            match = equal.pop() if equal else None
            matches.append(match)
            if match is not None:
                self.ids[outline.id] = match
        return matches

    async def _in_target(self, task: Task) -> Task:
        """Return a task in its target project, if it is shared."""
        if task.project_id is None:
            return task
        project = await self._target_project(task.project_id)
        return replace(task, project=project.name, project_id=project.id)

    async def _create(self, task: Task, blocked_by: tuple[int, ...], parent: int | None) -> int:
        """Create a task with these edges. Returns its id."""
        created = task.created_at or self._transaction.now
        new = replace(
            task,
            id=task.id if self._keep_numbers else 0,
            blocked_by=blocked_by,
            parent=parent,
            created_at=created,
            updated_at=task.updated_at or created,
            version=1,
        )
        stored = await self._transaction.write("create", None, new)
        assert stored is not None
        self._result.created["task"] += 1
        return stored.id

    def _mapped(self, outline: _TaskOutline) -> _Edges:
        """Return edges with the ids of this workspace, without those to tasks that are not created yet."""
        return (
            tuple(self.ids[number] for number in outline.blocked_by if number in self.ids),
            None if outline.parent is None else self.ids.get(outline.parent),
        )

    async def _add_edges(self, number: int, blocked_by: tuple[int, ...], parent: int | None) -> None:
        """Set the edges of a new task, now that all others exist."""
        stored: Task = await self._transaction.find("task", id=number)
        complete = replace(stored, blocked_by=blocked_by, parent=parent, version=stored.version + 1)
        await self._transaction.write("update", stored, complete)


def _outline(task: Task) -> _TaskOutline:
    edited = type_of(task).edited_values(task)
    values = [value for name, value in edited.items() if name not in _ID_FIELDS]
    key = msgspec.json.encode([task.user, task.created_at, task.project_id is not None, *values])
    return _TaskOutline(task.id, sha256(key).digest(), task.blocked_by, task.parent)


def _with_edges(task: _TaskOutline, fingerprints: Mapping[int, bytes]) -> bytes:
    """Return a key that is equal for equal tasks with edges to equal tasks."""
    parent = b"" if task.parent is None else fingerprints.get(task.parent, b"")
    blockers = sorted(fingerprints[number] for number in task.blocked_by if number in fingerprints)
    return b"".join((task.fingerprint, parent, b"|", *blockers))


# Which task waits for which


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
