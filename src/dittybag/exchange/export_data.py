"""Export of a snapshot of a workspace, or of one project."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

from dittybag.domain.changes import Change
from dittybag.domain.entities import ENTITY_TYPES, Entity, Kind, project_of
from dittybag.domain.errors import ProjectNotFound
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import Project
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.resources import Resource
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
        self._tasks: set[str] = set()

    async def run(self) -> dict[str, int]:
        if self._sink.project is not None:
            self._project = await find_project(self._transaction, self._sink.project)
        for kind in ENTITY_TYPES:
            await self._export_entities(kind)
        if self._sink.history:
            await self._export_history()
        return self._progress.counts

    async def _export_entities(self, kind: Kind) -> None:
        async for entity in all_entities(self._transaction, kind):
            if not self._includes(kind, entity):
                continue
            content = None
            if kind == "resource":
                self._contents.add(entity.sha256)
                content = await self._transaction.content(entity.sha256)
            elif kind == "task":
                self._tasks.add(str(entity.id))
            self._sink.entity(entity, content)
            if kind != "project":
                self._progress.step(f"{kind}s")

    def _includes(self, kind: Kind, entity: Any) -> bool:
        if self._project is None:
            return True
        if kind == "task":
            return bool(entity.project == self._project.name)
        return project_of(entity) == self._project.id

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
        seq = 0
        while page := await self._transaction.changes.page(
            ChangeQuery(after=seq, limit=PAGE, kind=kind, oldest_first=True)
        ):
            for change in page:
                if self._includes_change(change):
                    yield change
            seq = page[-1].seq

    def _includes_change(self, change: Change) -> bool:
        if self._project is None:
            return True
        return change.entity in self._tasks if change.kind == "task" else change.project == self._project.id
