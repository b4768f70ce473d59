"""Checks whether the entry of a client can start its server: program, database and project exist."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dittybag.assembly.completed_names import read_names
from dittybag.assembly.store_factory import is_file
from dittybag.clients.connector import parse_launch
from dittybag.config import Settings, SettingsError, settings
from dittybag.domain.errors import StorageError
from dittybag.domain.projects import AUTOMATIC, DEFAULT_PROJECT

#: Variables that determine the data folder and that clients pass on. All others are those of the entry.
_INHERITED: Final = ("HOME", "XDG_DATA_HOME")


def entry_problem(value: Any) -> str | None:
    """Return why an entry of Dittybag cannot work, or `None`. Entries of other programs are not checked."""
    launch = parse_launch(value)
    if launch is None:
        return None
    if not _is_program(launch.command):
        return f"the program {launch.command} does not exist"
    database, workspace, project = (
        serve_option(launch.arguments, name) for name in ("--db", "--workspace", "--project")
    )
    try:
        chosen = settings(_environment(launch.variables), db=database, workspace=workspace, project=project)
    except SettingsError as error:
        return str(error)
    is_chosen = bool(database or workspace or launch.variables.get("DITTYBAG_DATABASE_URL"))
    return _database_problem(chosen, is_chosen=is_chosen)


def _is_program(command: str) -> bool:
    # For a path, `which` checks that it can be executed.
    return shutil.which(os.path.expanduser(command)) is not None  # noqa: PTH111


def serve_option(arguments: Sequence[str], name: str) -> str | None:
    """Return the value of an option of `dittybag serve`; the last one counts."""
    value = None
    for argument, following in zip(arguments, [*arguments[1:], None], strict=True):
        if argument == name:
            value = following
        elif argument.startswith(f"{name}="):
            value = argument.removeprefix(f"{name}=")
    return value


def _environment(variables: Mapping[str, Any]) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return inherited | {name: value for name, value in variables.items() if isinstance(value, str)}


def _database_problem(chosen: Settings, *, is_chosen: bool) -> str | None:
    """`is_chosen`: the entry names the database. The default database is created when it is first used."""
    path, project = chosen.database, chosen.project
    if not is_file(path) or not os.path.isabs(path):  # noqa: PTH117
        # A server is not asked, and the folder of the client is not known.
        return None
    if not os.path.exists(path):  # noqa: PTH110
        if is_chosen:
            return f"the database {path} does not exist"
        return (
            None
            if project in (DEFAULT_PROJECT, AUTOMATIC)
            else f"the project '{project}' does not exist in {path}"
        )
    try:
        found = read_names(chosen, lambda names: names.project(project))
    except StorageError as error:
        return str(error)
    return (
        None
        if found is not None or project == AUTOMATIC
        else f"the project '{project}' does not exist in {path}"
    )
