"""Copy a workspace from one database to another, SQLite or PostgreSQL."""

from __future__ import annotations

from dittybag.protocol.lazy_tls import asyncio  # isort: skip  # first: it imports asyncio without TLS

from dittybag.assembly.store_factory import open_store
from dittybag.services.workspace_copy import CopyResult, ReportProgress, WorkspaceCopy

__all__ = ["CopyResult", "copy"]


def copy(source: str, target: str, report: ReportProgress) -> CopyResult:
    """Copy a workspace. Raises `DittybagError` and `SettingsError`."""

    async def run() -> CopyResult:
        from_store = await open_store(source, create=False)
        try:
            to_store = await open_store(target)
            try:
                return await WorkspaceCopy(from_store, to_store, report).run()
            finally:
                await to_store.close()
        finally:
            await from_store.close()

    return asyncio.run(run())
