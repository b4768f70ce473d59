"""`dittybag restore`: restore an earlier version of an item, or a database from a backup."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dittybag.cli.change_output import change_data
from dittybag.cli.error_output import ExitStatus
from dittybag.cli.history import project_names
from dittybag.cli.output import clip_line, print_result
from dittybag.cli.restore_backup import restore_backup
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.changes import Change

if TYPE_CHECKING:
    from dittybag.services.workspace import WorkspaceSession


@click.command("restore", StrictCommand)
@click.argument("what")
@click.option("--force", is_flag=True, help="Replace an existing database with the backup.")
@in_workspace
def command(what: str, options: WorkspaceOptions, *, force: bool) -> int:
    """Restore an item to its state after a change, or a database from a backup.

    WHAT is the number of a change, from `dittybag history`, or a backup file; of an automatic backup, from
    `dittybag backup --list`, the name is enough. Deleted items are re-created.
    Restoring an item can be undone. A backup replaces an existing database only with --force, which keeps the
    old database under another name.

    \b
    Examples:
      dittybag restore 42
      dittybag restore dittybag-backup.db
    """
    if not what.isascii() or not what.isdigit():
        return restore_backup(options, what, force=force)
    change, projects = options.run(lambda session: _restore(session, int(what)))
    is_deleted = change.after is None
    state = "is deleted again" if is_deleted else f"was restored to its state after change {change.seq}"
    print_result(
        {"restored": change_data(change, projects), "deleted": is_deleted},
        f"{change.kind.capitalize()} '{clip_line(change.label)}' {state}",
    )
    return ExitStatus.OK


async def _restore(session: WorkspaceSession, seq: int) -> tuple[Change, dict[int, str]]:
    history = session.workspace.history
    change = (await history.compare(session.caller, seq)).first
    await history.restore(session.caller, seq)
    return change, await project_names(session)
