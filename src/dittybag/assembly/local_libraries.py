"""Access to the prompt libraries of this machine, without a workspace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from dittybag.protocol.lazy_tls import asyncio  # isort: skip  # first: it imports asyncio without TLS

from dittybag.library import install_records, installer
from dittybag.library.installer import AddResult, RemoveResult, UpdateResult
from dittybag.library.library_folders import Directories
from dittybag.library.library_service import LibraryService
from dittybag.library.render.template_renderer import TemplateRenderer
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
    """Load the libraries of this machine, or only the one in the folder `alone`, and run `work` on them.

    `extra`: further directories of libraries.
    """

    async def run() -> T:
        renderer = TemplateRenderer()
        libraries = LibraryService(Directories(home, extra, single=alone), renderer)
        try:
            await libraries.load()
            return await work(libraries)
        finally:
            await libraries.close()
            renderer.close()

    return asyncio.run(run())
