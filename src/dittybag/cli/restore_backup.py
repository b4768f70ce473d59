"""Restoring a database from a backup, and why files are refused."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Final

import click

from dittybag.cli.error_output import ExitStatus, report
from dittybag.cli.output import clip_line, print_json, progress
from dittybag.cli.workspace_options import WorkspaceOptions
from dittybag.domain.text import one_line

if TYPE_CHECKING:
    from dittybag.assembly.backup_files import FileRefused, Reason

_MAX_MESSAGE: Final = 200
#: No system has longer names.
_MAX_PATH: Final = 4096
_SEARCH: Final = "check the name; --workspace and --db say which database is meant"
_RESTART: Final = "MCP clients and servers that report an error from now on have to be started again"


def restore_backup(options: WorkspaceOptions, file: str, *, force: bool, as_json: bool) -> int:
    """Make the database what it was in a backup; the exit status."""
    from dittybag.assembly.backup_files import FileRefused, restore

    settings = options.file_settings
    path = os.path.expanduser(file)  # noqa: PTH111
    try:
        with progress() as show:
            restored = restore(settings, path, force=force, tell=show or (lambda text: None))
    except FileRefused as error:
        return report_file_error(error, settings.database, restoring=True)
    warnings = [flaw.message for flaw in restored.flaws]
    if as_json:
        print_json(
            {
                "database": restored.database,
                "file": os.path.abspath(path),  # noqa: PTH100
                "change": restored.change,
                "aside": restored.aside,
                "warnings": warnings,
            }
        )
        return ExitStatus.OK
    click.echo(f"Restored {printable_path(restored.database)} from {printable_path(path)}")
    if restored.aside is not None:
        click.echo(f"What was there before: {printable_path(restored.aside)}")
    print_warnings(warnings, "the backup had these flaws already: dittybag doctor says more")
    click.echo(f"hint: {_RESTART}", err=True)
    return ExitStatus.OK


def printable_path(path: str) -> str:
    """The name of a file, on one line, whatever it consists of."""
    return one_line(click.format_filename(path), _MAX_PATH)


def print_warnings(messages: list[str], hint: str) -> None:
    """Say on standard error what is wrong with something that was done nevertheless."""
    for message in messages:
        click.echo(f"warning: {clip_line(message, _MAX_MESSAGE)}", err=True)
    if messages:
        click.echo(f"hint: {hint}", err=True)


def report_file_error(error: FileRefused, database: str, *, restoring: bool = False) -> ExitStatus:
    """Say why a file cannot be what it is asked to be, and what to do; the exit status."""
    path = printable_path(error.path)
    quoted = shlex.quote(path)
    words: dict[Reason, tuple[ExitStatus, str, str, str]] = {
        "missing": (ExitStatus.NOT_FOUND, "NOT_FOUND", f"there is no file {path}", _SEARCH),
        "no folder": (
            ExitStatus.NOT_FOUND,
            "NOT_FOUND",
            f"there is no folder {path}",
            f"make it: mkdir -p {quoted}",
        ),
        "name": (ExitStatus.REFUSED, "REFUSED", f"the name {path} is not in UTF-8", "give it another name"),
        "folder": (ExitStatus.REFUSED, "REFUSED", f"{path} is a folder", "name a file"),
        "itself": (ExitStatus.REFUSED, "REFUSED", f"{path} is the database itself", "name another file"),
        "in use": (
            ExitStatus.CONFLICT,
            "EXISTS",
            f"there is a log of SQLite's beside {path}: a program has it open, or was interrupted",
            "name another file",
        ),
        "exists": (
            ExitStatus.CONFLICT,
            "EXISTS",
            f"{path} is there already",
            "add --force: what is there is then kept under another name"
            if restoring
            else "name another file, or add --force",
        ),
        "damaged": (
            ExitStatus.STORAGE,
            "DAMAGED",
            f"{path} is damaged: {clip_line('; '.join(error.details), _MAX_MESSAGE)}",
            "nothing was changed; try an older backup"
            if restoring
            else f"no backup was made; run dittybag doctor --db {shlex.quote(printable_path(database))}",
        ),
    }
    status, code, message, hint = words[error.reason]
    report(message, hint, code=code)
    return status
