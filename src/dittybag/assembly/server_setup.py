"""Servers for MCP clients, built from settings."""

from __future__ import annotations

from collections.abc import Callable

from dittybag.assembly.logging_setup import log_to_stderr
from dittybag.assembly.store_factory import is_file
from dittybag.assembly.workspace_session import open_workspace
from dittybag.config import Settings, SettingsError
from dittybag.contracts.connection_projects import AutomaticProject
from dittybag.contracts.profiles import PROFILES, build_server, visible_tools
from dittybag.contracts.tool_specs import TOOLSETS, ServerScope
from dittybag.domain.projects import DEFAULT_PROJECT, NEW_PROJECT
from dittybag.library.library_folders import Directories
from dittybag.library.library_service import LibraryService
from dittybag.library.render.template_renderer import TemplateRenderer
from dittybag.protocol.server import Observer, Server
from dittybag.protocol.transports import stdio
from dittybag.services.template_service import TemplateService


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
    workspace = await open_workspace(
        settings, renderer, replicas=settings.read_replicas, after_commit=_daily_backup(settings)
    )
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
    )
    server = build_server(
        PROFILES[settings.profile],
        server_scope,
        read_only=settings.read_only,
        toolsets=settings.toolsets,
        observe=observe,
        state_key=shared_state_key(settings),
    )
    return server_scope, server


def _daily_backup(settings: Settings) -> Callable[[], None]:
    """Return what makes the backup of the day. Its modules are imported with the first write."""
    note_commit: Callable[[], None] | None = None

    def after_commit() -> None:
        nonlocal note_commit
        if note_commit is None:
            from dittybag.assembly.automatic_backups import DailyBackup

            note_commit = DailyBackup(settings).note_commit
        note_commit()

    return after_commit


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
