"""Restoring a database from a backup, and error messages for backup files."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Final

import click

from dittybag.cli.error_output import ExitStatus, report
from dittybag.cli.output import clip_line, format_path, hint, print_aside, print_result, progress
from dittybag.cli.workspace_options import WorkspaceOptions
from dittybag.domain.text import one_line

if TYPE_CHECKING:
    from dittybag.assembly.backup_files import FileRefused, Reason
    from dittybag.config import Settings

_MAX_MESSAGE: Final = 200
#: The longest path on common systems.
_MAX_PATH: Final = 4096
_SEARCH: Final = "check the name; --workspace and --db select the database"
_RESTART: Final = "restart any MCP clients and servers that now report errors"


def restore_backup(options: WorkspaceOptions, file: str, *, force: bool) -> int:
    """Restore the database from a backup and return the exit status."""
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
