"""The options --workspace, --db and --project, and sessions in the workspace that they name."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from dittybag.cli.output import clip_line
from dittybag.cli.read_input import close_matches, suggestion
from dittybag.cli.strict_options import DB, JSON, SHARED_OPTIONS, WORKSPACE, shared_values, takes
from dittybag.config import (
    Settings,
    SettingsError,
    local_user_name,
    settings_from_process,
    workspace_names,
)
from dittybag.domain.errors import ProjectNotFound, PromptNotFound, ResourceNotFound, WorkspaceNotFound

if TYPE_CHECKING:
    from dittybag.assembly.workspace_session import LibrarySession
    from dittybag.services.workspace import WorkspaceSession

T = TypeVar("T")

#: Where the context has the path of the temporary workspace.
_TEMPORARY: Final = "dittybag.temporary_workspace"
#: At most this many names of databases are shown in a hint.
_MAX_NAMES: Final = 10
#: At most this many names are searched for suggestions.
_MAX_COMPARED: Final = 10_000


class WorkspaceOptions(Struct, frozen=True):
    """The values of --workspace, --db and --project; `None` for an option that was not given."""

    workspace: str | None
    db: str | None
    project: str | None = None

    @property
    def settings(self) -> Settings:
        return settings_from_process(workspace=self.workspace, db=self.db, project=self.project)

    @property
    def file_settings(self) -> Settings:
        """The settings, for commands that need a SQLite file. Raises `SettingsError` for PostgreSQL."""
        from dittybag.assembly.store_factory import is_file

        settings = self.settings
        if not is_file(settings.database):
            raise SettingsError(
                "This command works with SQLite databases only. For PostgreSQL, use its own tools such as "
                "pg_dump, or `dittybag export`"
            )
        return settings

    @property
    def project_name(self) -> str:
        """The name of the project; for `auto`, that of the folder's project."""
        with self.existing_settings() as settings:
            return self.with_project_name(settings).project

    def with_project_name(self, settings: Settings, *, create: bool = False) -> Settings:
        """Return the settings with the name of the folder's project instead of `auto`.

        `create`: create the project if it does not exist.
        """
        from dittybag.assembly.workspace_session import with_project_name

        return with_project_name(settings, settings.actor or local_user_name(), create=create)

    def run(self, work: Callable[[WorkspaceSession], Awaitable[T]], *, create: bool = False) -> T:
        """Run `work` in a session of the workspace, as the current user, and return its result.

        Only commands that add something `create` a missing workspace. If a prompt or a resource does not
        exist, the error gets a note with similar names.
        """
        from dittybag.assembly.workspace_session import run_in_session

        async def work_with_suggestions(session: WorkspaceSession) -> T:
            try:
                return await work(session)
            except (PromptNotFound, ResourceNotFound) as error:
                error.add_note(await _similar_names(session, error))
                raise

        with self._open_settings(create=create) as settings, _suggesting_projects(settings):
            actor = settings.actor or local_user_name()
            return run_in_session(settings, actor, work_with_suggestions, create=create)

    def run_with_libraries(self, work: Callable[[LibrarySession], Awaitable[T]]) -> T:
        """Run `work` in a session that also has templates and prompt libraries, and return its result."""
        from dittybag.assembly.workspace_session import run_in_library_session

        with self.existing_settings() as settings, _suggesting_projects(settings):
            return run_in_library_session(settings, settings.actor or local_user_name(), work)

    def existing_settings(self) -> AbstractContextManager[Settings]:
        """The settings, for commands that must not create a workspace.

        The default workspace always seems to exist: until the first write, it is an empty temporary one,
        which is removed at the end of the command.
        """
        return self._open_settings(create=False)

    @contextmanager
    def _open_settings(self, *, create: bool) -> Iterator[Settings]:
        from dittybag.assembly.store_factory import is_missing

        settings = self.settings
        if not create and settings.is_default_database and is_missing(settings.database):
            context = click.get_current_context().find_root()
            if _TEMPORARY not in context.meta:
                context.meta[_TEMPORARY] = context.with_resource(temporary_workspace(settings)).database
            yield replace(settings, database=context.meta[_TEMPORARY], auto_backup=False)
            return
        try:
            yield settings
        except WorkspaceNotFound as error:
            for hint in _workspace_hints(settings):
                error.add_note(hint)
            raise


@contextmanager
def temporary_workspace(settings: Settings) -> Iterator[Settings]:
    """Yield the settings with a temporary database, which is removed afterwards."""
    from tempfile import TemporaryDirectory

    from dittybag.assembly.workspace_session import with_workspace

    with TemporaryDirectory(prefix="dittybag-", ignore_cleanup_errors=True) as folder:
        database = os.path.join(folder, "empty.db")  # noqa: PTH118  # pathlib is slow to import
        temporary = replace(settings, database=database, auto_backup=False)
        with_workspace(temporary, lambda workspace: workspace.projects.all())
        yield temporary


@contextmanager
def _suggesting_projects(settings: Settings) -> Iterator[None]:
    """If a project does not exist, add notes with similar names and how to create it."""
    try:
        yield
    except ProjectNotFound as error:
        from shlex import quote

        from dittybag.assembly.workspace_session import with_workspace

        sizes = with_workspace(settings, lambda workspace: workspace.projects.all(), create=False)
        names = [size.project.name for size in sizes]
        error.add_note(suggestion(error.project, names, "run `dittybag project list` to see all projects"))
        error.add_note(f"to create it, run: dittybag project create {quote(clip_line(error.project))}")
        raise


def _workspace_hints(settings: Settings) -> list[str]:
    """Return what there is instead of a missing database."""
    from dittybag.assembly.store_factory import is_file

    hints = []
    if is_file(settings.database):
        folder, file = os.path.split(os.path.abspath(settings.database))  # noqa: PTH100
        names = workspace_names(folder)
        close = close_matches(file.removesuffix(".db"), names)
        shown = close or names[:_MAX_NAMES]
        if folder != settings.home:
            shown = [os.path.join(folder, f"{name}.db") for name in shown]  # noqa: PTH118
        if close:
            hints.append(f"did you mean {' or '.join(shown)}?")
        elif shown:
            more = ", ..." if len(names) > len(shown) else ""
            hints.append(f"there is {', '.join(shown)}{more}")
    hints.append("to see the workspaces in the data folder, run: dittybag workspaces")
    hints.append("a command that adds something, such as dittybag prompt add, creates a workspace")
    return hints


async def _similar_names(session: WorkspaceSession, error: PromptNotFound | ResourceNotFound) -> str:
    """Return a hint to prompts or resources with similar names."""
    kind = "prompt" if isinstance(error, PromptNotFound) else "resource"
    if kind == "prompt":
        names = await session.workspace.prompts.names(session.caller, _MAX_COMPARED)
    else:
        resources = await session.workspace.resources.all(session.caller)
        names = [item.uri if ":" in error.reference else item.name for item in resources]
    return suggestion(error.reference, names, f"run `dittybag {kind} list` to see all {kind}s")


def current_options() -> WorkspaceOptions:
    """Return the options of the current command line."""
    given = shared_values(click.get_current_context())
    return WorkspaceOptions(given.get("workspace"), given.get("db"), given.get("project"))


def in_workspace(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command take --workspace, --db and --json. It receives `options`."""

    @wraps(function)
    def command(*arguments: Any, **others: Any) -> Any:
        return function(*arguments, options=current_options(), **others)

    return takes(command, WORKSPACE, DB, JSON)


def in_project(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command take --project, --workspace, --db and --json. It receives `options`."""
    return takes(in_workspace(function), *SHARED_OPTIONS)
