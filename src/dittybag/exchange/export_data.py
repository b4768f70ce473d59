"""Export of a snapshot of a workspace, or of one project."""

from __future__ import annotations

from collections.abc import AsyncIterator, Container
from typing import Any, Protocol

from msgspec.structs import replace

from dittybag.domain.entities import ENTITY_TYPES, Entity, Kind, project_of
from dittybag.domain.errors import ProjectNotFound
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import Project
from dittybag.domain.tasks import Task
from dittybag.exchange.progress_counter import PAGE, ProgressCallback, ProgressCounter
from dittybag.services.lost_claims import without_claim


class ExportSink(Protocol):
    """Writes an export. It receives one kind after the other, each in the order of creation."""

    #: The exported project, `None` for the whole workspace.
    project: str | None

    def entity(self, entity: Entity, content: bytes | None = None) -> None: ...

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
        #: The ids of the exported tasks.
        self._tasks: set[int] = set()

    async def run(self) -> dict[str, int]:
        if self._sink.project is not None:
            self._project = await find_project(self._transaction, self._sink.project)
        else:
            await self._count_all()
        tasks = all_entities(self._transaction, "task")
        self._tasks = {task.id async for task in tasks if self._includes("task", task)}
        for kind in ENTITY_TYPES:
            await self._export_entities(kind)
        return self._progress.counts

    async def _count_all(self) -> None:
        """Find out how many entities there are, for the progress."""
        sizes = await self._transaction.projects.all()
        self._progress.totals = {
            "prompts": sum(size.prompts for size in sizes),
            "resources": sum(size.resources for size in sizes),
            "tasks": await self._transaction.tasks.count_all(),
        }

    async def _export_entities(self, kind: Kind) -> None:
        async for entity in all_entities(self._transaction, kind):
            if not self._includes(kind, entity):
                continue
            content = None
            if kind == "resource":
                content = await self._transaction.content(entity.sha256)
            exported = entity
            if isinstance(entity, Task):
                # Claims stay behind, as references to what is not exported do.
                projects = None if self._project is None else {self._project.id}
                exported = without_others(
                    await without_claim(self._transaction, entity), projects, self._tasks
                )
            self._sink.entity(exported, content)
            if kind != "project":
                self._progress.step(f"{kind}s")

    def _includes(self, kind: Kind, entity: Any) -> bool:
        if self._project is None:
            return True
        if kind == "task" and entity.project_id is None:
            return bool(entity.project == self._project.name)
        return project_of(entity) == self._project.id


def without_others(task: Task, projects: Container[int] | None, tasks: Container[int]) -> Task:
    """Return a task without references to other projects and tasks than these. `None`: to any project."""
    is_elsewhere = projects is not None and task.project_id not in projects
    return replace(
        task,
        project_id=None if is_elsewhere else task.project_id,
        blocked_by=tuple(other for other in task.blocked_by if other in tasks),
        parent=task.parent if task.parent in tasks else None,
    )
