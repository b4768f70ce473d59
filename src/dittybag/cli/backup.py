"""`dittybag backup`: back up the database while it is in use, and restore it."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Final

import click

from dittybag.cli.error_output import ExitStatus, report
from dittybag.cli.output import (
    clip_line,
    format_path,
    hint,
    print_aside,
    print_list,
    print_result,
    progress,
)
from dittybag.cli.strict_options import StrictGroup
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.display import format_moment, format_size
from dittybag.domain.text import one_line
from dittybag.domain.times import iso

if TYPE_CHECKING:
    from dittybag.assembly.backup_files import FileRefused, Reason
    from dittybag.config import Settings

_MAX_MESSAGE: Final = 200
#: The longest path on common systems.
_MAX_PATH: Final = 4096
_SEARCH: Final = "check the name; --workspace and --db select the database"
_RESTART: Final = "restart any MCP clients and servers that now report errors"


@click.group("backup", StrictGroup)
def command() -> None:
    """Back up the database while it is in use, and restore it."""


@command.command("create")
@click.argument("file", type=click.Path())
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@in_workspace
def create(file: str, options: WorkspaceOptions, *, force: bool) -> int:
    """Back up the database to FILE while it is in use.

    The backup is a consistent snapshot in a single file, and is verified before it is moved to FILE.

    \b
    Examples:
      dittybag backup create dittybag-monday.db
      dittybag backup create ~/backups/notes.db --workspace notes --force
    """
    from dittybag.assembly.backup_files import FileRefused, back_up

    settings = options.file_settings
    path = os.path.expanduser(file)  # noqa: PTH111
    try:
        with progress() as show:
            backup = back_up(settings, path, force=force, report=show)
    except FileRefused as error:
        return report_file_error(error, settings.database)
    warnings = [problem.message for problem in backup.problems]
    source, target = (format_path(printable_path(path)) for path in (settings.database, backup.file))
    print_result(
        {
            "file": backup.file,
            "database": settings.database,
            "bytes": backup.bytes,
            "change": backup.change,
            "warnings": warnings,
        },
        f"Backed up {source} to {target} ({format_size(backup.bytes)})",
    )
    print_warnings(
        warnings, "the backup is an exact copy, but the database has these problems; run `dittybag doctor`"
    )
    return ExitStatus.OK


@command.command("list")
@in_workspace
def list_backups(options: WorkspaceOptions) -> None:
    """List the backups of the database in the data folder, newest first.

    A server makes one a day in its folder `backups`; the last 7 are kept.
    DITTYBAG_AUTO_BACKUP=off turns this off.

    \b
    Example:
      dittybag backup list
    """
    from dittybag.assembly.stored_backups import stored_backups

    settings = options.file_settings
    found = stored_backups(settings)
    off = "DITTYBAG_AUTO_BACKUP turns them off" if not settings.auto_backup else "a server makes one a day"
    print_list(
        {
            "backups": [
                {
                    "file": one.file,
                    "bytes": one.bytes,
                    "made_at": iso(one.made_at),
                    "automatic": one.is_automatic,
                }
                for one in found
            ]
        },
        ("made", "size", "how", "name"),
        [
            (
                format_moment(one.made_at),
                format_size(one.bytes),
                "automatically" if one.is_automatic else "by hand",
                printable_path(os.path.basename(one.file)),  # noqa: PTH119  # pathlib is slow to import
            )
            for one in found
        ],
        empty=("No automatic backups", off),
        right=(1,),
    )
    if found:
        folder = printable_path(format_path(os.path.dirname(found[0].file)))  # noqa: PTH120
        hint(f"they are in {folder}; to restore one, run: dittybag backup restore NAME --force")


@command.command("restore")
@click.argument("file")
@click.option("--force", is_flag=True, help="Replace an existing database.")
@in_workspace
def restore_backup(file: str, options: WorkspaceOptions, *, force: bool) -> int:
    """Restore the database from the backup FILE.

    Of a backup in the data folder, the name is enough. An existing database is replaced only with --force,
    which keeps it under another name.

    \b
    Examples:
      dittybag backup restore dittybag-monday.db --db elsewhere.db
      dittybag backup restore default-2026-11-17.db --force
    """
    from dittybag.assembly.backup_files import FileRefused, restore

    settings = options.file_settings
    path = _find_backup(settings, os.path.expanduser(file))  # noqa: PTH111
    try:
        with progress() as show:
            restored = restore(settings, path, force=force, report=show)
    except FileRefused as error:
        missing = error.reason == "missing" and error.path == path
        hints = _backup_hints(settings) if missing else ()
        return report_file_error(error, settings.database, *hints, restoring=True)
    warnings = [problem.message for problem in restored.problems]
    database, source = (format_path(printable_path(name)) for name in (restored.database, path))
    lines = [f"Restored {database} from {source}"]
    if restored.aside is not None:
        lines.append(f"Previous database kept as {format_path(printable_path(restored.aside))}")
    print_result(
        {
            "database": restored.database,
            "file": os.path.abspath(path),  # noqa: PTH100
            "change": restored.change,
            "aside": restored.aside,
            "warnings": warnings,
        },
        *lines,
    )
    print_warnings(warnings, "the backup already had these problems; run `dittybag doctor` for details")
    hint(_RESTART)
    return ExitStatus.OK


def _find_backup(settings: Settings, file: str) -> str:
    """Return the path of a backup; an automatic one may be given without its folder."""
    if os.path.dirname(file) or os.path.lexists(file):  # noqa: PTH120
        return file
    from dittybag.assembly.stored_backups import stored_backups

    names = {os.path.basename(one.file): one.file for one in stored_backups(settings)}  # noqa: PTH119
    return names.get(file, file)


def _backup_hints(settings: Settings) -> list[str]:
    """Return how to restore the newest automatic backup, if there is one."""
    from dittybag.assembly.stored_backups import newest_restore

    newest = newest_restore(settings)
    return [] if newest is None else [f"the newest backup is from {newest[0]}: {newest[1]}"]


def printable_path(path: str) -> str:
    """Return the name of a file on one line, without control characters."""
    return one_line(click.format_filename(path), _MAX_PATH)


def print_warnings(messages: list[str], advice: str) -> None:
    """Print warnings and one hint to standard error."""
    for message in messages:
        print_aside(f"warning: {clip_line(message, _MAX_MESSAGE)}")
    if messages:
        hint(advice)


def report_file_error(error: FileRefused, database: str, *hints: str, restoring: bool = False) -> ExitStatus:
    """Report why a backup file cannot be written or restored, and return the exit status."""
    path = printable_path(error.path)
    quoted = shlex.quote(path)
    cases: dict[Reason, tuple[ExitStatus, str, str, str]] = {
        "missing": (ExitStatus.NOT_FOUND, "NOT_FOUND", f"File {path} does not exist", _SEARCH),
        "no folder": (
            ExitStatus.NOT_FOUND,
            "NOT_FOUND",
            f"Folder {path} does not exist",
            f"create it: mkdir -p {quoted}",
        ),
        "name": (ExitStatus.REFUSED, "REFUSED", f"The name {path} is not valid UTF-8", "choose another name"),
        "folder": (ExitStatus.REFUSED, "REFUSED", f"{path} is a folder", "choose a file name"),
        "itself": (ExitStatus.REFUSED, "REFUSED", f"{path} is the database itself", "choose another file"),
        "in use": (
            ExitStatus.CONFLICT,
            "EXISTS",
            f"{path} has a SQLite log file: another program has it open, or was interrupted",
            "choose another file",
        ),
        "exists": (
            ExitStatus.CONFLICT,
            "EXISTS",
            f"{path} already exists",
            "use --force to replace it; the old file is kept under another name"
            if restoring
            else "choose another file, or use --force to overwrite it",
        ),
        "damaged": (
            ExitStatus.STORAGE,
            "DAMAGED",
            f"{path} is damaged: {clip_line('; '.join(error.details), _MAX_MESSAGE)}",
            "nothing was changed; try an older backup"
            if restoring
            else f"no backup was made; run: dittybag doctor --db {shlex.quote(printable_path(database))}",
        ),
    }
    status, code, message, hint = cases[error.reason]
    report(message, hint, *hints, code=code)
    return status
