"""`dittybag restore`: a thing as it was after a change, or a database as it was in a backup."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dittybag.cli.change_output import change_data, changed_entity
from dittybag.cli.error_output import ExitStatus
from dittybag.cli.history import project_names
from dittybag.cli.output import clip_line, json_option, print_json
from dittybag.cli.restore_backup import restore_backup
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.changes import Change, label_of

if TYPE_CHECKING:
    from dittybag.assembly.workspace_session import WorkspaceSession


@click.command("restore")
@click.argument("what")
@click.option("--force", is_flag=True, help="Put a backup in the place of a database that is there.")
@in_workspace
@json_option
def command(what: str, options: WorkspaceOptions, *, force: bool, as_json: bool) -> int:
    """Make a thing what it was right after a change, or a database what it was in a backup.

    WHAT is the number of a change, from `dittybag history`, or the file of a backup. A thing that was deleted
    comes back, and restoring it can be undone. A backup never overwrites a database without --force, and then
    the database is moved aside.

    \b
    Examples:
      dittybag restore 42
      dittybag restore dittybag-backup.db
    """
    if not what.isascii() or not what.isdigit():
        return restore_backup(options, what, force=force, as_json=as_json)

    async def work(session: WorkspaceSession) -> tuple[Change, dict[int, str]]:
        history = session.workspace.history
        change = await history.get(int(what))
        await history.restore_in_any_project(change, actor=session.caller.actor)
        return change, await project_names(session)

    change, projects = options.run(work)
    if as_json:
        print_json({"restored": change_data(change, projects), "deleted": change.after is None})
        return ExitStatus.OK
    name = clip_line(label_of(changed_entity(change)))
    became = "is deleted again" if change.after is None else f"is what it was after change {change.seq}"
    click.echo(f"{change.kind.capitalize()} '{name}' {became}")
    return ExitStatus.OK
