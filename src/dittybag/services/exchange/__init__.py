"""Export a workspace to a sink, and import a source into a workspace."""

from __future__ import annotations

from dittybag.domain.errors import ProjectNotFound
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.services.exchange.exact_restore import ExactRestore, can_restore
from dittybag.services.exchange.exchange_types import (
    ExportSink,
    ImportResult,
    ImportSource,
    OnConflict,
    ProgressCallback,
    RenamedEntity,
)
from dittybag.services.exchange.export_data import ExportRun
from dittybag.services.exchange.merge import MergeImport
from dittybag.services.exchange.validated import ValidatedSource

__all__ = [
    "ExchangeService",
    "ExportSink",
    "ImportResult",
    "ImportSource",
    "OnConflict",
    "ProgressCallback",
    "RenamedEntity",
]


class _DryRunRollback(Exception):
    """Raised after a successful dry run, so that the transaction is rolled back."""

    def __init__(self, result: ImportResult) -> None:
        self.result = result


class ExchangeService:
    """Exports workspaces and projects, and imports sources of any format."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def require_project(self, project: str) -> None:
        """Raise `ProjectNotFound` if the project does not exist."""

        async def work(transaction: Transaction) -> None:
            if await transaction.projects.by_name(project) is None:
                raise ProjectNotFound(project)

        await self._store.read(work)

    async def export(
        self,
        sink: ExportSink,
        *,
        project: str | None = None,
        history: bool = True,
        on_progress: ProgressCallback | None = None,
    ) -> dict[str, int]:
        """Export a snapshot of the workspace, or of one project with its tasks. Returns counts by kind."""

        async def work(transaction: Transaction) -> dict[str, int]:
            return await ExportRun(transaction, sink, on_progress).run(project, history=history)

        return await self._store.read(work, slow=True)

    async def import_source(
        self,
        source: ImportSource,
        *,
        actor: str,
        project: str | None = None,
        default: str = DEFAULT_PROJECT,
        on_conflict: OnConflict = "fail",
        history: bool = True,
        dry_run: bool = False,
        on_progress: ProgressCallback | None = None,
    ) -> ImportResult:
        """Import a source, completely or not at all.

        An export that is imported into an empty workspace restores it exactly, with its history if `history`
        is set. Otherwise, the entities are added in one batch: to `project` if it is given, else to the
        projects that the source names, else to `default`.

        Raises `Invalid`, `ProjectNotFound` and `SeveralConflicts`.
        """

        async def work(transaction: Transaction) -> ImportResult:
            validated = ValidatedSource(source, on_progress)
            first = await transaction.initial_change()
            if (
                validated.is_export
                and project is None
                and first is not None
                and can_restore(validated, first)
            ):
                restore = ExactRestore(validated, transaction, first)
                if history and validated.has_history:
                    result = await restore.with_history()
                else:
                    result = await restore.without_history(actor)
            else:
                merge = MergeImport(validated, transaction, on_conflict, dry_run=dry_run)
                result = await merge.run(project, default)
            if dry_run:
                raise _DryRunRollback(result)
            return result

        try:
            return await self._store.write(work, actor=actor)
        except _DryRunRollback as rollback:
            return rollback.result
