"""The libraries of this machine, for faces that look at them or change them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from dittybag.protocol.lazy_tls import asyncio  # isort: skip  # first: it imports asyncio without TLS

from dittybag.library import install_records, installer
from dittybag.library.installer import Added, Removed, Updated
from dittybag.library.library_folders import Directories
from dittybag.library.library_service import Shelf
from dittybag.library.render.template_renderer import TemplateRenderer
from dittybag.library.sources.limited_copy import LeftOut

__all__ = [
    "Added",
    "LeftOut",
    "Removed",
    "Shelf",
    "Updated",
    "install_records",
    "installer",
    "with_libraries",
]

T = TypeVar("T")


def with_libraries(home: str, work: Callable[[Shelf], Awaitable[T]], *, alone: str | None = None) -> T:
    """Run one piece of work on the libraries of this machine; with `alone`, on the one in this folder."""

    async def run() -> T:
        renderer = TemplateRenderer()
        shelf = Shelf(Directories(home, alone=alone), renderer)
        try:
            await shelf.load()
            return await work(shelf)
        finally:
            await shelf.close()
            renderer.close()

    return asyncio.run(run())
