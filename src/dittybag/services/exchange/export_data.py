"""Giving: everything there is at one moment, or one project of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from dittybag.domain.changes import Change, Kind
from dittybag.domain.errors import ProjectNotFound
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import Project
from dittybag.domain.resources import Resource
from dittybag.services.exchange.exchange_types import PAGE, Progress, Sink, Tell


async def all_things(transaction: Transaction, kind: Kind) -> AsyncIterator[Any]:
    """All things of a kind in the order of creation, some at a time."""
    number = 0
    while some := await transaction.page_of_kind(kind, number, PAGE):
        for thing in some:
            yield thing
        number = some[-1].id if kind in ("project", "task") else some[-1].number


class Giving:
    """One export."""

    def __init__(self, transaction: Transaction, sink: Sink, tell: Tell | None) -> None:
        self._transaction = transaction
        self._sink = sink
        self._progress = Progress(tell)
        self._only: Project | None = None
        self._contents: set[str] = set()
        self._tasks: set[str] = set()

    async def give(self, project: str | None, *, history: bool) -> dict[str, int]:
        """How much of each kind was given. Raises `ProjectNotFound`."""
        if project is not None:
            self._only = await self._transaction.projects.by_name(project)
            if self._only is None:
                raise ProjectNotFound(project)
        async for found in all_things(self._transaction, "project"):
            if self._only is None or found.id == self._only.id:
                self._sink.project(found)
        await self._give_prompts()
        await self._give_resources()
        await self._give_tasks()
        if history:
            await self._give_history()
        return self._progress.counts

    def _wants(self, project: int | None) -> bool:
        return self._only is None or project == self._only.id

    async def _give_prompts(self) -> None:
        async for prompt in all_things(self._transaction, "prompt"):
            if self._wants(prompt.project):
                self._sink.prompt(prompt)
                self._progress.step("prompts")

    async def _give_resources(self) -> None:
        async for resource in all_things(self._transaction, "resource"):
            if self._wants(resource.project):
                self._contents.add(resource.sha256)
                self._sink.resource(resource, await self._transaction.content(resource.sha256))
                self._progress.step("resources")

    async def _give_tasks(self) -> None:
        async for task in all_things(self._transaction, "task"):
            if self._only is None or task.project == self._only.name:
                self._tasks.add(str(task.id))
                self._sink.task(task)
                self._progress.step("tasks")

    async def _give_history(self) -> None:
        past: set[str] = set()
        async for change in self._log("resource"):
            past |= {item.sha256 for item in (change.before, change.after) if isinstance(item, Resource)}
        for digest in sorted(past - self._contents):
            self._sink.content(digest, await self._transaction.content(digest))
        async for change in self._log():
            self._sink.change(change)
            self._progress.step("changes")

    async def _log(self, kind: Kind | None = None) -> AsyncIterator[Change]:
        """The changes of what is given, and of what was once in the same place."""
        seq = 0
        while some := await self._transaction.changes.since(seq, PAGE, kind=kind):
            for change in some:
                if self._is_of_interest(change):
                    yield change
            seq = some[-1].seq

    def _is_of_interest(self, change: Change) -> bool:
        if self._only is not None and change.kind == "task":
            return change.entity in self._tasks
        return self._wants(change.project)
