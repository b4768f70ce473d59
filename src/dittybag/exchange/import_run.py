"""Import of a source into a workspace, completely or not at all."""

from __future__ import annotations

from functools import partial

from dittybag.domain.imports import ImportOptions, ImportResult
from dittybag.domain.ports import Store, Transaction
from dittybag.exchange.import_sources import FileSource
from dittybag.exchange.merge_import import MergeImport
from dittybag.exchange.progress_counter import ProgressCallback
from dittybag.exchange.validated_source import ValidatedSource


class _DryRunRollback(Exception):
    """Raised after a successful dry run, so that the transaction is rolled back."""

    def __init__(self, result: ImportResult) -> None:
        self.result = result


async def import_source(
    store: Store, source: FileSource, options: ImportOptions, on_progress: ProgressCallback | None = None
) -> ImportResult:
    """Import a source: add its entities in one batch.

    Raises `Invalid`, `ProjectNotFound` and `SeveralConflicts`.
    """
    run = partial(_import, source=source, options=options, on_progress=on_progress)
    try:
        result = await store.write(run, actor=options.actor)
    except _DryRunRollback as rollback:
        result = rollback.result
    result.renamed[:0] = source.renamed
    result.notes = source.notes
    return result


async def _import(
    transaction: Transaction,
    source: FileSource,
    options: ImportOptions,
    on_progress: ProgressCallback | None,
) -> ImportResult:
    validated = ValidatedSource(source, on_progress)
    result = await MergeImport(validated, transaction, options).run()
    if options.dry_run:
        raise _DryRunRollback(result)
    return result
