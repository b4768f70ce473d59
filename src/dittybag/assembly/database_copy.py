"""Copy a workspace from one database to another, SQLite or PostgreSQL."""

from __future__ import annotations

from dittybag.protocol.lazy_asyncio import asyncio  # isort: skip  # first: it imports asyncio without TLS

from dittybag.assembly.store_factory import opened_store
from dittybag.domain.progress import ReportProgress
from dittybag.exchange.workspace_copy import CopyResult, copy_workspace


def copy(source: str, target: str, report: ReportProgress) -> CopyResult:
    """Copy a workspace. Raises `DittybagError` and `SettingsError`."""
    return asyncio.run(_copy(source, target, report))


async def _copy(source: str, target: str, report: ReportProgress) -> CopyResult:
    async with opened_store(source, create=False) as from_store, opened_store(target) as to_store:
        return await copy_workspace(from_store, to_store, report)
