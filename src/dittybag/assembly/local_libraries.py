"""Access to the prompt libraries of this machine, without a workspace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from dittybag.protocol.lazy_asyncio import asyncio  # isort: skip  # first: it imports asyncio without TLS

from dittybag.assembly.workspace_session import open_libraries
from dittybag.library import install_records, installer
from dittybag.library.installer import AddResult, RemoveResult, UpdateResult
from dittybag.library.library_service import LibraryService
from dittybag.library.sources.limited_copy import SkippedFile

__all__ = [
    "AddResult",
    "LibraryService",
    "RemoveResult",
    "SkippedFile",
    "UpdateResult",
    "install_records",
    "installer",
    "with_libraries",
]

T = TypeVar("T")


def with_libraries(
    home: str,
    work: Callable[[LibraryService], Awaitable[T]],
    *,
    extra: tuple[str, ...] = (),
    alone: str | None = None,
) -> T:
    """Run `work` on libraries. See `open_libraries`."""

    async def run() -> T:
        async with open_libraries(home, extra, alone=alone) as (libraries, _):
            return await work(libraries)

    return asyncio.run(run())
