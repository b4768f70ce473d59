"""Servers for MCP clients, built from settings."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from dittybag.assembly.logging_setup import log_to_stderr
from dittybag.assembly.store_factory import database_name, is_file
from dittybag.assembly.workspace_session import open_workspace
from dittybag.config import Settings, SettingsError
from dittybag.contracts.connection_projects import AutomaticProject
from dittybag.contracts.profiles import PROFILES, build_server, visible_tools
from dittybag.contracts.tool_specs import TOOLSETS, ServerScope
from dittybag.contracts.usage_recorder import UsageRecorder
from dittybag.domain.projects import DEFAULT_PROJECT, NEW_PROJECT
from dittybag.library.library_folders import Directories
from dittybag.library.library_service import LibraryService
from dittybag.library.render.template_renderer import TemplateRenderer
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.server import Observer, Server
from dittybag.protocol.transports import stdio
from dittybag.services.template_service import TemplateService

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from dittybag.assembly.published_files import ChangedScope, PublishedFiles
    from dittybag.domain.changes import ChangeNotification

#: What changed before the server started is published after this time: first come the requests.
_FIRST_UPDATE_SECONDS: Final = 1.0


def check_profile_and_toolsets(settings: Settings) -> None:
    """Raise `SettingsError` for an unknown profile or toolset, or if no tool is left."""
    if settings.profile not in PROFILES:
        known = ", ".join(PROFILES)
        raise SettingsError(f"there is no profile '{settings.profile}'; use one of: {known}")
    for name in settings.toolsets:
        if name not in TOOLSETS:
            raise SettingsError(f"there is no toolset '{name}'; use one of: {', '.join(TOOLSETS)}")
    profile = PROFILES[settings.profile]
    if settings.toolsets and not visible_tools(profile, read_only=False, toolsets=settings.toolsets):
        available = ", ".join(dict.fromkeys(tool.toolset for tool in profile.tools)) or "none"
        raise SettingsError(
            f"the profile '{profile.name}' has no tools in these toolsets; its toolsets: {available}"
        )


async def open_server(settings: Settings, observe: Observer | None = None) -> tuple[ServerScope, Server]:
    """Open the workspace and project of the settings, and build a server for them."""
    renderer = TemplateRenderer()
    workspace = await open_workspace(settings, renderer, replicas=settings.read_replicas)
    try:
        name = DEFAULT_PROJECT if settings.has_automatic_project else settings.project
        project = await workspace.projects.find(name)
    except BaseException:
        await workspace.store.close()
        raise
    automatic = None
    if settings.has_automatic_project:
        from dittybag.assembly.folder_links import client_folders

        automatic = AutomaticProject(workspace, client_folders(settings), project.id)
    libraries = LibraryService(Directories(settings.home, settings.foreign_libraries), renderer)
    if PROFILES[settings.profile].prompts != "stored":
        workspace.search.libraries = libraries
    server_scope = ServerScope(
        workspace,
        TemplateService(renderer, libraries),
        libraries,
        # Until the folder's project is selected, nothing is visible.
        NEW_PROJECT if automatic is not None else project.id,
        settings.actor,
        automatic=automatic,
        read_only=settings.read_only,
        is_one_of_many=_may_be_one_of_many(settings),
        usage=None
        if settings.read_only
        else UsageRecorder(workspace, "stdio" if settings.http is None else "http"),
    )
    server = build_server(
        PROFILES[settings.profile],
        server_scope,
        read_only=settings.read_only,
        toolsets=settings.toolsets,
        observe=observe,
        state_key=shared_state_key(settings),
    )
    if not settings.read_only:
        publishing = _Publishing(settings, server_scope, libraries)
        lifespan = server.lifespan
        server.lifespan = lambda: publishing.during(lifespan)
    return server_scope, server


class _Publishing:
    """Keeps published files in step while a server runs. Its modules are imported if there are such files."""

    def __init__(self, settings: Settings, scope: ServerScope, libraries: LibraryService) -> None:
        self._settings = settings
        self._scope = scope
        self._libraries = libraries
        self._profile = PROFILES[settings.profile]
        self._files: PublishedFiles | None = None

    @asynccontextmanager
    async def during(
        self, lifespan: Callable[[], AbstractAsyncContextManager[object]]
    ) -> AsyncIterator[None]:
        async with lifespan():
            timer = self._start()
            try:
                yield
            finally:
                if timer is not None:
                    timer.cancel()
                if self._files is not None:
                    await self._files.close()

    def _start(self) -> asyncio.TimerHandle | None:
        has_files = self._has_files()
        if has_files or self._profile.notifies:
            # Otherwise, a server that notifies no clients need not follow the changes.
            self._scope.workspace.store.subscribe(self._on_changes)
        if self._profile.uses_libraries:
            self._libraries.subscribe(lambda: self._update("libraries"))
        if self._profile.skills:
            self._libraries.subscribe_to_skills(lambda paths: self._update("libraries"))
        if not has_files:
            return None
        return asyncio.get_running_loop().call_later(_FIRST_UPDATE_SECONDS, self._update, "all")

    def _has_files(self) -> bool:
        return os.path.isdir(os.path.join(self._settings.home, "publish"))  # noqa: PTH112, PTH118

    def _on_changes(self, changes: Sequence[ChangeNotification]) -> None:
        if any(change.kind == "project" for change in changes):
            # Files name the project that they come from.
            self._update("all")
        else:
            changed = {change.project for change in changes if change.kind == "prompt"}
            self._update(*(project for project in changed if project is not None))

    def _update(self, *changed: ChangedScope) -> None:
        if changed and (files := self._published_files()) is not None:
            files.update(changed)

    def _published_files(self) -> PublishedFiles | None:
        if self._files is None and self._has_files():
            from dittybag.assembly.published_files import PublishedFiles

            self._files = PublishedFiles(
                self._settings.home,
                database_name(self._settings.database),
                self._scope.workspace,
                self._scope.templates,
                self._libraries,
                has_libraries=self._profile.uses_libraries,
            )
        return self._files


def _may_be_one_of_many(settings: Settings) -> bool:
    """Whether there may be several servers behind one address: HTTP servers on the same PostgreSQL."""
    return settings.http is not None and not is_file(settings.database)


def shared_state_key(settings: Settings) -> bytes | None:
    """Return the key for request states that servers on one database share, or `None` for a random key.

    It is as secret as the URL of the database. A forged state is worth nothing: it holds answers that its
    client could also send.
    """
    if not _may_be_one_of_many(settings):
        return None
    import hashlib

    return hashlib.sha256(b"request state\0" + settings.database.encode()).digest()


def serve_stdio(settings: Settings, on_open: Callable[[], object]) -> None:
    """Serve one client on standard input and output until it disconnects.

    `on_open` is called when the server is open, before it reads the first request.
    """
    check_profile_and_toolsets(settings)
    log_to_stderr()

    async def server() -> Server:
        _, server = await open_server(settings)
        on_open()
        return server

    stdio.run(server)
