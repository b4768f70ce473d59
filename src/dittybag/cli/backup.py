"""`dittybag backup`: back up the database while it is in use."""

from __future__ import annotations

import os

import click

from dittybag.cli.error_output import ExitStatus
from dittybag.cli.output import format_path, print_result, progress
from dittybag.cli.restore_backup import print_warnings, printable_path, report_file_error
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.display import format_size


@click.command("backup", StrictCommand)
@click.argument("file", type=click.Path())
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@in_workspace
def command(file: str, options: WorkspaceOptions, *, force: bool) -> int:
    """Back up the database to FILE while it is in use.

    The backup is a consistent snapshot in a single file, and is verified before it is moved to FILE.
    Restore it with `dittybag restore FILE`.

    \b
    Examples:
      dittybag backup dittybag-monday.db
      dittybag backup ~/backups/notes.db --workspace notes --force
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
