"""Export of a snapshot of a workspace, or of one project."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from dittybag.domain.changes import Change
from dittybag.domain.entities import Kind
from dittybag.domain.errors import ProjectNotFound
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import Project
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.resources import Resource
from dittybag.services.exchange.exchange_types import PAGE, ExportSink, ProgressCallback, ProgressCounter


async def all_entities(transaction: Transaction, kind: Kind) -> AsyncIterator[Any]:
    """Yield all entities of a kind in the order of creation. They are read page by page."""
    number = 0
    while page := await transaction.page_of_kind(kind, number, PAGE):
        for entity in page:
            yield entity
        number = page[-1].id if kind in ("project", "task") else page[-1].number


class ExportRun:
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

    async def run(self, project: str | None, *, history: bool) -> dict[str, int]:
        """Export to the sink. Returns the counts by kind. Raises `ProjectNotFound`."""
        if project is not None:
            self._project = await self._transaction.projects.by_name(project)
            if self._project is None:
                raise ProjectNotFound(project)
        async for found in all_entities(self._transaction, "project"):
            if self._project is None or found.id == self._project.id:
                self._sink.project(found)
        await self._export_prompts()
        await self._export_resources()
        await self._export_tasks()
        if history:
            await self._export_history()
        return self._progress.counts

    def _includes(self, project: int | None) -> bool:
        return self._project is None or project == self._project.id

    async def _export_prompts(self) -> None:
        async for prompt in all_entities(self._transaction, "prompt"):
            if self._includes(prompt.project):
                self._sink.prompt(prompt)
                self._progress.step("prompts")

    async def _export_resources(self) -> None:
        async for resource in all_entities(self._transaction, "resource"):
            if self._includes(resource.project):
                self._contents.add(resource.sha256)
                self._sink.resource(resource, await self._transaction.content(resource.sha256))
                self._progress.step("resources")

    async def _export_tasks(self) -> None:
        async for task in all_entities(self._transaction, "task"):
            if self._project is None or task.project == self._project.name:
                self._tasks.add(str(task.id))
                self._sink.task(task)
                self._progress.step("tasks")

    async def _export_history(self) -> None:
        digests: set[str] = set()
        async for change in self._log("resource"):
            digests |= {
                entity.sha256 for entity in (change.before, change.after) if isinstance(entity, Resource)
            }
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
        if self._project is not None and change.kind == "task":
            return change.entity in self._tasks
        return self._includes(change.project)
