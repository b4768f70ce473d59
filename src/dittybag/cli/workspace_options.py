"""Where a command works: the options that all of them have, and the way there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from dittybag.cli.completion import complete_projects, complete_workspaces
from dittybag.cli.read_input import text
from dittybag.config import Settings, SettingsError, from_process, person

if TYPE_CHECKING:
    from dittybag.assembly.workspace_session import LibrarySession, WorkspaceSession

T = TypeVar("T")


class WorkspaceOptions(Struct, frozen=True):
    """The workspace and the project that a command was given."""

    workspace: str | None
    db: str | None
    project: str | None = None

    @property
    def settings(self) -> Settings:
        return from_process(workspace=self.workspace, db=self.db, project=self.project)

    @property
    def file_settings(self) -> Settings:
        """The settings for what needs a file. Raises `SettingsError` if the database is on a server."""
        from dittybag.assembly.store_factory import is_file

        settings = self.settings
        if not is_file(settings.database):
            raise SettingsError(
                "this is for databases in files; PostgreSQL has tools of its own, like pg_dump, and "
                "dittybag export works with both"
            )
        return settings

    def run(self, work: Callable[[WorkspaceSession], Awaitable[T]]) -> T:
        """Do a piece of work in the workspace, on behalf of whoever sits here."""
        from dittybag.assembly.workspace_session import run_in_session

        settings = self.settings
        return run_in_session(settings, settings.actor or person(), work)

    def run_with_libraries(self, work: Callable[[LibrarySession], Awaitable[T]]) -> T:
        """Do a piece of work that needs templates or prompt libraries too."""
        from dittybag.assembly.workspace_session import run_in_library_session

        settings = self.settings
        return run_in_library_session(settings, settings.actor or person(), work)


def in_workspace(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say which database; it gets `options`."""

    @wraps(function)
    def command(*arguments: Any, workspace: str | None, db: str | None, **others: Any) -> Any:
        return function(
            *arguments, options=WorkspaceOptions(workspace, db, others.pop("project_name", None)), **others
        )

    for option in (
        click.option("--db", metavar="FILE", type=text, help="A database anywhere else."),
        click.option(
            "--workspace",
            metavar="NAME",
            type=text,
            shell_complete=complete_workspaces,
            help="A database in Dittybag's data folder.",
        ),
    ):
        command = option(command)
    return command


def in_project(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say which database and which project; it gets `options`."""
    return click.option(
        "-p",
        "--project",
        "project_name",
        metavar="NAME",
        type=text,
        shell_complete=complete_projects,
        help="The project; else `default`.",
    )(in_workspace(function))
