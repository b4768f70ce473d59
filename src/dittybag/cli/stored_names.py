"""Completion of stored names, as `shell_complete=` of options and arguments."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

import click
from msgspec.structs import replace

from dittybag.config import Settings, SettingsError, home, settings_from_process, workspace_names
from dittybag.domain.errors import DittybagError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from dittybag.services.workspace import WorkspaceSession

#: A name and what to say about it.
_Name: TypeAlias = tuple[str, str]
_Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]

#: At most this many names are offered.
_MAX_NAMES: Final = 200
#: Only the names of this many prompts, and of this many of the newest tasks and resources, are compared.
_MAX_COMPARED: Final = 100_000
_MAX_RECENT: Final = 1_000


def _completer(find: Callable[[Settings, str], Iterable[_Name]]) -> _Complete:
    """Return a completer. It offers nothing if the names cannot be read: a message would garble the line."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        # Its options complete to names, too.
        from dittybag.cli.strict_options import shared_values

        given = shared_values(ctx)
        values = {name: given.get(name) for name in ("workspace", "db", "project")}
        try:
            names = list(find(settings_from_process(**values), incomplete))
        except (DittybagError, SettingsError, OSError):
            return []
        fitting = [(name, about) for name, about in names if name.startswith(incomplete)]
        # Shells read one name per line.
        shown = [(name, about) for name, about in fitting if name.isprintable()][:_MAX_NAMES]
        return [CompletionItem(name, help=" ".join(about.split()) or None) for name, about in shown]

    return complete


def _stored(find: Callable[[WorkspaceSession, str], Awaitable[list[_Name]]]) -> _Complete:
    """Return a completer of names in the database, which is neither created nor changed."""

    def read(settings: Settings, incomplete: str) -> list[_Name]:
        from dittybag.assembly.store_factory import is_missing
        from dittybag.assembly.workspace_session import run_in_session
        from dittybag.config import local_user_name

        if is_missing(settings.database):
            return []
        settings = replace(settings, read_only=True)
        return run_in_session(settings, local_user_name(), lambda session: find(session, incomplete))

    return _completer(read)


async def _find_projects(session: WorkspaceSession, incomplete: str) -> list[_Name]:
    names = await session.workspace.projects.names(incomplete, _MAX_NAMES)
    return [(name, "") for name in names]


async def _find_prompts(session: WorkspaceSession, incomplete: str) -> list[_Name]:
    names = await session.workspace.prompts.names(session.caller, _MAX_COMPARED)
    return [(name, "") for name in names]


async def _find_resources(session: WorkspaceSession, incomplete: str) -> list[_Name]:
    """Return the names of resources; once there is a colon, their URIs."""
    from dittybag.domain.queries import ResourceQuery

    resources, caller = session.workspace.resources, session.caller
    if ":" in incomplete:
        return [(uri, "") for uri in await resources.uris(caller, incomplete, _MAX_NAMES)]
    query = ResourceQuery(project=caller.project, text=incomplete, limit=_MAX_RECENT)
    page = await resources.page(caller, query)
    return [(item.name, item.title or item.mime_type or "") for item in page.resources]


async def _find_tasks(session: WorkspaceSession, incomplete: str) -> list[_Name]:
    """Return the numbers of the newest open tasks with their titles."""
    from dittybag.domain.queries import TaskQuery

    query = TaskQuery(user=session.caller.user, completed=False, order="created", limit=_MAX_RECENT)
    tasks = await session.workspace.tasks.page(session.caller, query)
    return [(str(task.id), task.title) for task in tasks]


def _find_libraries(settings: Settings, incomplete: str) -> list[_Name]:
    from dittybag.assembly.library_names import library_names

    return [(name, "") for name in library_names(settings)]


def _find_library_prompts(settings: Settings, incomplete: str) -> list[_Name]:
    """Return `team:` for a library, and after the colon its prompts."""
    from dittybag.assembly.library_names import library_prompts

    library, colon, _ = incomplete.partition(":")
    if not colon:
        return [(f"{name}:", about) for name, about in _find_libraries(settings, incomplete)]
    return library_prompts(settings, library)


def _join(*completers: _Complete) -> _Complete:
    return lambda ctx, param, incomplete: [
        item for complete in completers for item in complete(ctx, param, incomplete)
    ]


workspaces: Final = _completer(lambda settings, _: [(name, "") for name in workspace_names(home(os.environ))])
projects: Final = _stored(_find_projects)
prompts: Final = _stored(_find_prompts)
resources: Final = _stored(_find_resources)
tasks: Final = _stored(_find_tasks)
items: Final = _join(prompts, resources)
libraries: Final = _completer(_find_libraries)
all_prompts: Final = _join(prompts, _completer(_find_library_prompts))
