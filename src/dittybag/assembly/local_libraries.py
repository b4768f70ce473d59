"""The libraries of this machine, for faces that look at them or change them."""

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
    "SkippedFile",
    "RemoveResult",
    "LibraryService",
    "UpdateResult",
    "install_records",
    "installer",
    "with_libraries",
]

T = TypeVar("T")


def with_libraries(
    home: str, work: Callable[[LibraryService], Awaitable[T]], *, alone: str | None = None
) -> T:
    """Run one piece of work on the libraries of this machine; with `alone`, on the one in this folder."""

    async def run() -> T:
        renderer = TemplateRenderer()
        shelf = LibraryService(Directories(home, single=alone), renderer)
        try:
            await shelf.load()
            return await work(shelf)
        finally:
            await shelf.close()
            renderer.close()

    return asyncio.run(run())
