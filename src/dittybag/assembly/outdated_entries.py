"""Entries of clients that work, but that `dittybag connect` would write differently now."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from dittybag.assembly.client_connections import program, serve_options
from dittybag.assembly.entry_check import entry_problem, serve_option
from dittybag.clients.connector import ConfigTarget, Launch, parse_launch, written_entries

_OPTIONS: Final = ("--workspace", "--db", "--project", "--profile")
_PYTHON: Final = r"python[0-9.]*(\.exe)?"


def outdated_entries(target: ConfigTarget, home: str) -> dict[str, str]:
    """Return the outdated entries of a file by name, with the reason.

    Entries that somebody else has written or edited are not checked, nor are those that do not work.
    """
    found: dict[str, str] = {}
    for name, value in written_entries(target, home).items():
        launch = parse_launch(value)
        if launch is None or entry_problem(value) is not None:
            continue
        reason = _reason(launch)
        if reason is not None:
            found[name] = reason
    return found


def update_command(target: ConfigTarget, name: str, home: str) -> str:
    """Return the command that updates an outdated entry and keeps its database, project and profile."""
    words = ["dittybag", "connect", target.client.name]
    words += [] if target.scope == "user" else ["--scope", target.scope]
    words += [] if name == target.name else ["--name", name]
    launch = parse_launch(written_entries(target, home).get(name))
    given = () if launch is None else launch.arguments
    default = ["serve", *serve_options({})]
    for option in _OPTIONS:
        value = serve_option(given, option)
        words += [] if value is None or value == serve_option(default, option) else [option, value]
    return shlex.join(words)


def _reason(launch: Launch) -> str | None:
    given = {option: serve_option(launch.arguments, option) for option in _OPTIONS}
    if list(launch.arguments) != ["serve", *serve_options(given)]:
        missing = [option for option in serve_options(given)[::2] if given[option] is None]
        without = f", without {' and '.join(missing)}" if missing else ""
        return f"an older version of Dittybag wrote it{without}"
    if not _is_this_installation(launch.command):
        return f"it starts another installation of Dittybag, {launch.command}"
    return None


def _is_this_installation(command: str) -> bool:
    """Whether a command is of this installation, or of one that cannot be told apart, such as `uvx`."""
    if command == program()[0]:
        return True
    found = shutil.which(os.path.expanduser(command))  # noqa: PTH111
    if found is None:
        return True
    path = Path(found).absolute()
    if re.fullmatch(_PYTHON, path.name):
        return path.parent == Path(sys.executable).absolute().parent
    # Installers link to the program in the environment that they created.
    is_program = path.stem == "dittybag"
    return not is_program or path.resolve().parent == Path(sys.executable).absolute().parent
