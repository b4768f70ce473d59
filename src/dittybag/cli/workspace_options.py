"""The options --workspace, --db and --project, and sessions in the workspace that they name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from dittybag.cli.completion import complete_projects, complete_workspaces
from dittybag.cli.read_input import text
from dittybag.config import Settings, SettingsError, local_user_name, settings_from_process

if TYPE_CHECKING:
    from dittybag.assembly.workspace_session import LibrarySession, WorkspaceSession

T = TypeVar("T")


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

    def run(self, work: Callable[[WorkspaceSession], Awaitable[T]]) -> T:
        """Run `work` in a session of the workspace, as the current user, and return its result."""
        from dittybag.assembly.workspace_session import run_in_session

        settings = self.settings
        return run_in_session(settings, settings.actor or local_user_name(), work)

    def run_with_libraries(self, work: Callable[[LibrarySession], Awaitable[T]]) -> T:
        """Run `work` in a session that also has templates and prompt libraries, and return its result."""
        from dittybag.assembly.workspace_session import run_in_library_session

        settings = self.settings
        return run_in_library_session(settings, settings.actor or local_user_name(), work)


def in_workspace(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --workspace and --db to a command, which receives them as `options`."""

    @wraps(function)
    def command(*arguments: Any, workspace: str | None, db: str | None, **others: Any) -> Any:
        return function(
            *arguments, options=WorkspaceOptions(workspace, db, others.pop("project_name", None)), **others
        )

    for option in (
        click.option("--db", metavar="FILE", type=text, help="Path or URL of a database."),
        click.option(
            "--workspace",
            metavar="NAME",
            type=text,
            shell_complete=complete_workspaces,
            help="Name of a database in the data folder.",
        ),
    ):
        command = option(command)
    return command


def in_project(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --workspace, --db and --project to a command, which receives them as `options`."""
    return click.option(
        "-p",
        "--project",
        "project_name",
        metavar="NAME",
        type=text,
        shell_complete=complete_projects,
        help="Project (default: `default`).",
    )(in_workspace(function))
