"""Workspace sessions for commands, which need a workspace and a caller but no server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, TypeVar

from dittybag.protocol.lazy_asyncio import asyncio  # isort: skip  # first: it imports asyncio without TLS

from msgspec import Struct
from msgspec.structs import replace

from dittybag.assembly.store_factory import open_store
from dittybag.config import Settings
from dittybag.domain.ports import TemplateSyntax
from dittybag.domain.projects import DEFAULT_PROJECT, NEW_PROJECT
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace, WorkspaceSession

if TYPE_CHECKING:
    from dittybag.library.library_service import LibraryService
    from dittybag.library.render.template_renderer import TemplateRenderer
    from dittybag.services.template_service import TemplateService

T = TypeVar("T")


class LibrarySession(Struct, frozen=True):
    """A workspace session with the prompt libraries of this machine and the template service."""

    session: WorkspaceSession
    templates: TemplateService
    libraries: LibraryService


class _OnDemandSyntax:
    """Checks templates in a child process that runs only meanwhile. Implements `TemplateSyntax`."""

    async def syntax_error(self, source: str, *, client: Hashable = None) -> tuple[int, str] | None:
        with open_renderer() as renderer:
            return await renderer.syntax_error(source, client=client)


async def open_workspace(
    settings: Settings,
    syntax: TemplateSyntax | None = None,
    *,
    create: bool = True,
    replicas: Sequence[str] = (),
    after_commit: Callable[[], None] | None = None,
) -> Workspace:
    """Open the database. A missing one is created, or raises `WorkspaceNotFound` without `create`.

    `syntax` checks templates (default: on demand). `replicas`, `after_commit`: see `open_store`.
    """
    store = await open_store(
        settings.database,
        create=create,
        read_only=settings.read_only,
        replicas=replicas,
        after_commit=after_commit,
    )
    return Workspace(store, syntax or _OnDemandSyntax())


def with_workspace(
    settings: Settings,
    work: Callable[[Workspace], Awaitable[T]],
    *,
    create: bool = True,
) -> T:
    """Open a workspace, run `work` on it, and close it."""

    async def run() -> T:
        workspace = await open_workspace(settings, create=create)
        try:
            return await work(workspace)
        finally:
            await workspace.store.close()

    return asyncio.run(run())


def run_in_session(
    settings: Settings, actor: str, work: Callable[[WorkspaceSession], Awaitable[T]], *, create: bool = False
) -> T:
    """Open a workspace, run `work` on it as `actor`, and close it."""

    async def run(workspace: Workspace) -> T:
        if settings.has_automatic_project:
            caller = await _caller_in_folder(settings, workspace, actor)
        else:
            project = await workspace.projects.find(settings.project)
            caller = Caller(project.id, actor, interface="cli")
        return await work(WorkspaceSession(workspace, caller))

    return with_workspace(settings, run, create=create)


async def _caller_in_folder(settings: Settings, workspace: Workspace, actor: str) -> Caller:
    """Return a caller in the project of the current folder."""
    from dittybag.assembly.folder_links import client_folders

    folders = client_folders(settings)
    folder = (folders.from_environment() or folders.from_working_folder()).folder
    if folder is None:
        project = await workspace.projects.find(DEFAULT_PROJECT)
        return Caller(project.id, actor, interface="cli")
    found = await workspace.projects.of_folder(folder)
    return Caller(NEW_PROJECT if found is None else found.id, actor, interface="cli", folder=folder)


def with_project_name(settings: Settings, actor: str, *, create: bool) -> Settings:
    """Return the settings with the name of the folder's project instead of `auto`. `create`: create it."""
    if not settings.has_automatic_project:
        return settings

    async def name(session: WorkspaceSession) -> str:
        projects, folder = session.workspace.projects, session.caller.folder
        if create and folder is not None:
            return (await projects.create_of_folder(folder, actor=actor)).name
        return (await projects.of_caller(session.caller)).name

    return replace(settings, project=run_in_session(settings, actor, name, create=create))


@contextmanager
def open_renderer() -> Iterator[TemplateRenderer]:
    """Yield a renderer for templates, and close it."""
    from dittybag.library.render.template_renderer import TemplateRenderer

    renderer = TemplateRenderer()
    try:
        yield renderer
    finally:
        renderer.close()


@asynccontextmanager
async def open_libraries(
    home: str, extra: tuple[str, ...] = (), *, alone: str | None = None, cached: bool = False
) -> AsyncIterator[tuple[LibraryService, TemplateRenderer]]:
    """Load the libraries of this machine, or only the one in the folder `alone`, and close them.

    `extra`: further directories of libraries. `cached`: see `LibraryService.load`.
    """
    from dittybag.library.library_folders import Directories
    from dittybag.library.library_service import LibraryService

    with open_renderer() as renderer:
        libraries = LibraryService(Directories(home, extra, single=alone), renderer)
        try:
            await libraries.load(cached=cached)
            yield libraries, renderer
        finally:
            await libraries.close()


def run_in_library_session(
    settings: Settings, actor: str, work: Callable[[LibrarySession], Awaitable[T]]
) -> T:
    """Like `run_in_session`, with the libraries loaded."""
    from dittybag.services.template_service import TemplateService

    async def load_and_work(session: WorkspaceSession) -> T:
        async with open_libraries(settings.home, settings.known_libraries) as (libraries, renderer):
            session.workspace.search.libraries = libraries
            return await work(LibrarySession(session, TemplateService(renderer, libraries), libraries))

    return run_in_session(settings, actor, load_and_work)
