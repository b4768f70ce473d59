"""Use cases of exchange: give everything to whoever writes it down, take in what somebody has read."""

from __future__ import annotations

from dittybag.domain.errors import ProjectNotFound
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.services.exchange.exact_restore import Reproduction, possible
from dittybag.services.exchange.exchange_types import Intake, OnConflict, Renamed, Sink, Source, Tell
from dittybag.services.exchange.export_data import Giving
from dittybag.services.exchange.merge import Addition
from dittybag.services.exchange.validated import Reading

__all__ = ["Exchange", "Intake", "OnConflict", "Renamed", "Sink", "Source", "Tell"]


class _Rehearsed(Exception):
    """All went well, and is to be undone."""

    def __init__(self, intake: Intake) -> None:
        self.intake = intake


class Exchange:
    """Give and take whole workspaces, projects, or what other programs have."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def require(self, project: str) -> None:
        """Raises `ProjectNotFound` if there is no such project."""

        async def work(transaction: Transaction) -> None:
            if await transaction.projects.by_name(project) is None:
                raise ProjectNotFound(project)

        await self._store.read(work)

    async def export(
        self, sink: Sink, *, project: str | None = None, history: bool = True, tell: Tell | None = None
    ) -> dict[str, int]:
        """Give everything at one moment, or one project with its tasks; how much of each kind it was."""

        async def work(transaction: Transaction) -> dict[str, int]:
            return await Giving(transaction, sink, tell).give(project, history=history)

        return await self._store.read(work, slow=True)

    async def take(
        self,
        source: Source,
        *,
        actor: str,
        project: str | None = None,
        default: str = DEFAULT_PROJECT,
        on_conflict: OnConflict = "fail",
        history: bool = True,
        dry_run: bool = False,
        tell: Tell | None = None,
    ) -> Intake:
        """Take in all that a source has, or nothing of it.

        An untouched workspace becomes what the source's was, with its history if that is wanted. Else things
        are added in one batch: to `project`, or to those that the source names, or to `default`.
        """

        async def work(transaction: Transaction) -> Intake:
            reading = Reading(source, tell)
            first = await transaction.initial_change()
            if reading.own and project is None and first is not None and possible(reading, first):
                reproduction = Reproduction(reading, transaction, first)
                if history and reading.has_history:
                    intake = await reproduction.with_history()
                else:
                    intake = await reproduction.without_history(actor)
            else:
                addition = Addition(reading, transaction, on_conflict, rehearsal=dry_run)
                intake = await addition.make(project, default)
            if dry_run:
                raise _Rehearsed(intake)
            return intake

        try:
            return await self._store.write(work, actor=actor)
        except _Rehearsed as rehearsed:
            return rehearsed.intake
