"""`dittybag backup`: back up the database while it is in use."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from dittybag.cli.error_output import ExitStatus
from dittybag.cli.output import format_path, hint, print_list, print_result, progress
from dittybag.cli.restore_backup import print_warnings, printable_path, report_file_error
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.display import format_moment, format_size
from dittybag.domain.times import iso

if TYPE_CHECKING:
    from dittybag.config import Settings


@click.command("backup", StrictCommand)
@click.argument("file", type=click.Path(), required=False)
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@click.option("--list", "lists", is_flag=True, help="List the backups in the data folder.")
@in_workspace
def command(file: str | None, options: WorkspaceOptions, *, force: bool, lists: bool) -> int:
    """Back up the database to FILE while it is in use.

    The backup is a consistent snapshot in a single file, and is verified before it is moved to FILE.
    Restore it with `dittybag restore FILE`.

    A server makes a backup a day in the folder `backups` of the data folder; the last 7 are kept. `--list`
    shows them, and DITTYBAG_AUTO_BACKUP=off turns this off.

    \b
    Examples:
      dittybag backup dittybag-monday.db
      dittybag backup ~/backups/notes.db --workspace notes --force
      dittybag backup --list
    """
    from dittybag.assembly.backup_files import FileRefused, back_up

    settings = options.file_settings
    if lists:
        _print_stored_backups(settings)
        return ExitStatus.OK
    if file is None:
        raise click.UsageError("Give FILE, or --list.")
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


def _print_stored_backups(settings: Settings) -> None:
    from dittybag.assembly.stored_backups import stored_backups

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
        hint(f"they are in {folder}; to restore one, run: dittybag restore NAME --force")
