"""`dittybag restore`: restore an earlier version of an item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dittybag.cli.change_output import change_data
from dittybag.cli.history import project_names
from dittybag.cli.output import clip_line, print_result
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.whole_numbers import POSITIVE
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.changes import Change

if TYPE_CHECKING:
    from dittybag.services.workspace import WorkspaceSession


@click.command("restore", StrictCommand)
@click.argument("change", type=POSITIVE)
@in_workspace
def command(change: int, options: WorkspaceOptions) -> None:
    """Restore an item to its state after CHANGE, a number from `dittybag history`.

    Deleted items are re-created. Restoring an item can be undone.

    \b
    Example:
      dittybag restore 42
    """
    restored, projects = options.run(lambda session: _restore(session, change))
    is_deleted = restored.after is None
    state = "is deleted again" if is_deleted else f"was restored to its state after change {restored.seq}"
    print_result(
        {"restored": change_data(restored, projects), "deleted": is_deleted},
        f"{restored.kind.capitalize()} '{clip_line(restored.label)}' {state}",
    )


async def _restore(session: WorkspaceSession, seq: int) -> tuple[Change, dict[int, str]]:
    history = session.workspace.history
    change = (await history.compare(session.caller, seq)).first
    await history.restore(session.caller, seq)
    return change, await project_names(session)
