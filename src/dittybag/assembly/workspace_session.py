"""A workspace for one piece of work, on somebody's behalf: what commands need, and no server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from dittybag.protocol.lazy_tls import asyncio  # isort: skip  # first: it imports asyncio without TLS

from msgspec import Struct

from dittybag.assembly.store_factory import open_store
from dittybag.config import Settings
from dittybag.services.caller import Caller
from dittybag.services.workspace import Desk, Workspace

if TYPE_CHECKING:
    from dittybag.library.library_service import Shelf
    from dittybag.services.template_service import Templates

__all__ = ["Desk", "LibraryDesk", "at_desk", "at_library_desk", "open_workspace"]

T = TypeVar("T")


class LibraryDesk(Struct, frozen=True):
    """A desk with the prompt libraries of this machine, and what fills in templates."""

    desk: Desk
    templates: Templates
    libraries: Shelf


async def open_workspace(settings: Settings) -> Workspace:
    """Open the database; it is made if it is not there."""
    return Workspace(await open_store(settings.database))


def at_desk(settings: Settings, actor: str, work: Callable[[Desk], Awaitable[T]]) -> T:
    """Run one piece of work on a workspace that is opened for it."""

    async def run() -> T:
        workspace = await open_workspace(settings)
        try:
            project = await workspace.projects.find(settings.project)
            return await work(Desk(workspace, Caller(project.id, actor)))
        finally:
            await workspace.store.close()

    return asyncio.run(run())


def at_library_desk(settings: Settings, actor: str, work: Callable[[LibraryDesk], Awaitable[T]]) -> T:
    """Like `at_desk`, with libraries that have been read."""
    from dittybag.library.library_folders import Directories
    from dittybag.library.library_service import Shelf
    from dittybag.library.render.template_renderer import TemplateRenderer
    from dittybag.services.template_service import Templates

    async def at(desk: Desk) -> T:
        renderer = TemplateRenderer()
        shelf = Shelf(Directories(settings.home), renderer)
        try:
            await shelf.load()
            return await work(LibraryDesk(desk, Templates(renderer, shelf), shelf))
        finally:
            await shelf.close()
            renderer.close()

    return at_desk(settings, actor, at)
