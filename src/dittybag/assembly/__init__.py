"""The assembly: the only package that sees every layer, and builds what the settings ask for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from dittybag.protocol.lazy_tls import asyncio  # isort: skip  # first: it imports asyncio without TLS

from dittybag.assembly.logging_setup import log_patiently
from dittybag.assembly.workspace_session import open_workspace
from dittybag.config import Settings, SettingsError
from dittybag.contracts.profiles import PROFILES, build_server, visible_tools
from dittybag.contracts.tool_specs import TOOLSETS, ServerScope
from dittybag.library.library_folders import Directories
from dittybag.library.library_service import LibraryService
from dittybag.library.render.template_renderer import TemplateRenderer
from dittybag.protocol import Server
from dittybag.protocol.server import Observer
from dittybag.protocol.transports import stdio
from dittybag.services.template_service import TemplateService
from dittybag.services.workspace import Workspace

T = TypeVar("T")


def with_workspace(settings: Settings, work: Callable[[Workspace], Awaitable[T]]) -> T:
    """Run one piece of work on a workspace that is opened for it."""

    async def run() -> T:
        workspace = await open_workspace(settings)
        try:
            return await work(workspace)
        finally:
            await workspace.store.close()

    return asyncio.run(run())


def check_names(settings: Settings) -> None:
    """Raises `SettingsError` for a profile or toolset that there is not, or that leaves nothing."""
    if settings.profile not in PROFILES:
        known = ", ".join(PROFILES)
        raise SettingsError(f"there is no profile '{settings.profile}'; there are: {known}")
    for name in settings.toolsets:
        if name not in TOOLSETS:
            raise SettingsError(f"there is no toolset '{name}'; there are: {', '.join(TOOLSETS)}")
    profile = PROFILES[settings.profile]
    if settings.toolsets and not visible_tools(profile, read_only=False, toolsets=settings.toolsets):
        there = ", ".join(dict.fromkeys(tool.toolset for tool in profile.tools)) or "no tools at all"
        raise SettingsError(f"no tool is left of the profile '{profile.name}'; it has: {there}")


async def built(settings: Settings, observe: Observer | None = None) -> tuple[ServerScope, Server]:
    """The place that the settings mean, and a server that shows it."""
    workspace = await open_workspace(settings)
    try:
        project = await workspace.projects.find(settings.project)
    except BaseException:
        await workspace.store.close()
        raise
    renderer = TemplateRenderer()
    libraries = LibraryService(Directories(settings.home, settings.foreign_libraries), renderer)
    server_scope = ServerScope(
        workspace, TemplateService(renderer, libraries), libraries, project.id, settings.actor
    )
    server = build_server(
        PROFILES[settings.profile],
        server_scope,
        read_only=settings.read_only,
        toolsets=settings.toolsets,
        observe=observe,
    )
    return server_scope, server


def serve_stdio(settings: Settings) -> None:
    """Serve one client on standard input and output, until it hangs up."""
    check_names(settings)
    log_patiently()

    async def server() -> Server:
        _, server = await built(settings)
        return server

    stdio.run(server)
