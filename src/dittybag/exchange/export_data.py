"""Export of a snapshot of a workspace, or of one project."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

from msgspec.structs import replace

from dittybag.domain.changes import Change
from dittybag.domain.entities import ENTITY_TYPES, Entity, Kind, project_of
from dittybag.domain.errors import ProjectNotFound
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import Project
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.exchange.progress_counter import PAGE, ProgressCallback, ProgressCounter


class ExportSink(Protocol):
    """Writes an export. It receives one kind after the other, each in the order of creation."""

    #: The exported project, `None` for the whole workspace.
    project: str | None
    #: Whether the history is exported.
    history: bool

    def entity(self, entity: Entity, content: bytes | None = None) -> None: ...

    def content(self, sha256: str, content: bytes) -> None: ...

    def change(self, change: Change) -> None: ...

    def finish(self) -> None: ...


async def export_workspace(
    store: Store, sink: ExportSink, on_progress: ProgressCallback | None = None
) -> dict[str, int]:
    """Export a snapshot of the workspace, or of one project with its tasks. Returns counts by kind.

    Raises `ProjectNotFound`.
    """
    counts = await store.read(lambda transaction: _ExportRun(transaction, sink, on_progress).run(), slow=True)
    sink.finish()
    return counts


async def find_project(transaction: Transaction, name: str) -> Project:
    """Return a project by its name. Raises `ProjectNotFound`."""
    found = await transaction.projects.by_name(name)
    if found is None:
        raise ProjectNotFound(name)
    return found


async def all_entities(transaction: Transaction, kind: Kind) -> AsyncIterator[Any]:
    """Yield all entities of a kind in the order of creation. They are read page by page."""
    number, key = 0, ENTITY_TYPES[kind].key
    while page := await transaction.page_of_kind(kind, number, PAGE):
        for entity in page:
            yield entity
        number = getattr(page[-1], key)


class _ExportRun:
    """One export."""

    def __init__(
        self, transaction: Transaction, sink: ExportSink, on_progress: ProgressCallback | None
    ) -> None:
        self._transaction = transaction
        self._sink = sink
        self._progress = ProgressCounter(on_progress)
        self._project: Project | None = None
        self._contents: set[str] = set()
        #: The ids of the tasks to which exported tasks may refer; `None` for all.
        self._tasks: set[int] | None = None

    async def run(self) -> dict[str, int]:
        if self._sink.project is not None:
            self._project = await find_project(self._transaction, self._sink.project)
        if self._project is not None or not self._sink.history:
            self._tasks = await self._find_tasks()
        if self._project is None:
            await self._count_all()
        for kind in ENTITY_TYPES:
            await self._export_entities(kind)
        if self._sink.history:
            await self._export_history()
        return self._progress.counts

    async def _count_all(self) -> None:
        """Find out how many entities and changes there are, for the progress."""
        sizes = await self._transaction.projects.all()
        self._progress.totals = {
            "prompts": sum(size.prompts for size in sizes),
            "resources": sum(size.resources for size in sizes),
            "tasks": await self._transaction.tasks.count_all(),
            "changes": await self._transaction.changes.newest_seq(),
        }

    async def _find_tasks(self) -> set[int]:
        """Return the ids of the tasks to export, deleted ones included if the history is exported."""
        tasks = all_entities(self._transaction, "task")
        found = {task.id async for task in tasks if self._includes("task", task)}
        if self._project is None or not self._sink.history:
            return found
        last_projects = {change.entity: change.project async for change in self._changes("task")}
        deleted = {int(task) for task, project in last_projects.items() if project == self._project.id}
        return found | deleted

    async def _export_entities(self, kind: Kind) -> None:
        async for entity in all_entities(self._transaction, kind):
            if not self._includes(kind, entity):
                continue
            content = None
            if kind == "resource":
                self._contents.add(entity.sha256)
                content = await self._transaction.content(entity.sha256)
            self._sink.entity(self._without_others(entity), content)
            if kind != "project":
                self._progress.step(f"{kind}s")

    def _includes(self, kind: Kind, entity: Any) -> bool:
        if self._project is None:
            return True
        if kind == "task" and entity.project_id is None:
            return bool(entity.project == self._project.name)
        return project_of(entity) == self._project.id

    def _without_others(self, state: Any) -> Any:
        """Return a state without references to projects and tasks that are not exported."""
        if self._tasks is None or not isinstance(state, Task):
            return state
        is_elsewhere = self._project is not None and state.project_id != self._project.id
        return replace(
            state,
            project_id=None if is_elsewhere else state.project_id,
            blocked_by=tuple(task for task in state.blocked_by if task in self._tasks),
            parent=state.parent if state.parent in self._tasks else None,
        )

    async def _export_history(self) -> None:
        digests: set[str] = set()
        async for change in self._log("resource"):
            states = (change.before, change.after)
            digests |= {state.sha256 for state in states if isinstance(state, Resource)}
        for digest in sorted(digests - self._contents):
            self._sink.content(digest, await self._transaction.content(digest))
        async for change in self._log():
            self._sink.change(change)
            self._progress.step("changes")

    async def _log(self, kind: Kind | None = None) -> AsyncIterator[Change]:
        """Yield the changes of the exported entities, and of entities deleted from the same project."""
        async for change in self._changes(kind):
            if self._project is None:
                yield change
                continue
            is_inside = change.project == self._project.id
            if change.kind == "task" and int(change.entity) in (self._tasks or ()):
                project = change.project if is_inside else None
                yield replace(change, project=project, after=self._without_others(change.after))
            elif change.kind != "task" and is_inside:
                yield change

    async def _changes(self, kind: Kind | None) -> AsyncIterator[Change]:
        """Yield all changes, oldest first. They are read page by page."""
        seq = 0
        while page := await self._transaction.changes.page(
            ChangeQuery(after=seq, limit=PAGE, kind=kind, oldest_first=True)
        ):
            for change in page:
                yield change
            seq = page[-1].seq
