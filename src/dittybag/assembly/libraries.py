"""The libraries of this machine, for faces that look at them or change them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from dittybag.protocol.aio import asyncio  # isort: skip  # first: it imports asyncio without TLS

from dittybag.library import installing, origins
from dittybag.library.installing import Added, Removed, Updated
from dittybag.library.places import Directories
from dittybag.library.render.renderer import TemplateRenderer
from dittybag.library.shelf import Shelf
from dittybag.library.sources.intake import LeftOut

__all__ = ["Added", "LeftOut", "Removed", "Shelf", "Updated", "installing", "origins", "with_libraries"]

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
