"""`dittybag undo`: undo the last change, or several changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
from msgspec.structs import replace

from dittybag.cli.change_output import change_data
from dittybag.cli.error_output import ExitStatus, report, wants_json
from dittybag.cli.history import find_project_id, project_names
from dittybag.cli.output import clip_line, confirm, print_lines, print_result
from dittybag.cli.param_types import past_time
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.whole_numbers import POSITIVE, WholeNumber
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.changes import undo_effects
from dittybag.domain.display import format_count
from dittybag.services.history_service import UndoPlan, UndoSelection

if TYPE_CHECKING:
    from dittybag.services.workspace import WorkspaceSession

#: At most this many lines of a plan are printed; `--json` has all of them.
_MAX_LINES: Final = 20


@click.command("undo", StrictCommand)
@click.argument("change", type=POSITIVE, required=False)
@click.option("--last", type=WholeNumber(1, 10_000), metavar="N", help="Undo the last N changes.")
@click.option("--actor", metavar="NAME", help="Undo changes by this user or client; requires --since.")
@click.option(
    "--since", type=past_time, metavar="WHEN", help="Undo all changes since then: 2h, yesterday, 2026-11-15."
)
@click.option("--dry-run", is_flag=True, help="Show what would be undone, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--force", is_flag=True, help="Undo even if that overwrites later changes.")
@in_project
def command(
    change: int | None,
    options: WorkspaceOptions,
    *,
    last: int | None,
    actor: str | None,
    since: int | None,
    dry_run: bool,
    yes: bool,
    force: bool,
) -> int:
    """Undo the last change, the change numbered CHANGE, or several changes.

    Changes that were made together are undone together. With --project, only changes in that project, and to
    tasks, are undone. An undo can itself be undone with `dittybag undo`.
    On a terminal, the command shows the effects and asks for confirmation; otherwise it requires --yes.

    \b
    Examples:
      dittybag undo
      dittybag undo 42
      dittybag undo --last 3
      dittybag undo --actor claude-code --since 2h
    """
    selectors = [name for name, given in (("CHANGE", change), ("--last", last), ("--since", since)) if given]
    if len(selectors) > 1:
        raise click.UsageError(f"Give only one of {' and '.join(selectors)}.")
    if actor is not None and since is None:
        raise click.UsageError("--actor requires --since.")
    number = (last or 1) if since is None and change is None else None
    wanted = UndoSelection(seq=change, last=number, actor=actor, since=since)
    selection, plan, projects = options.run(lambda session: _plan(session, wanted, options.project))
    # Change 1 created the workspace itself.
    if not plan.changes or change == 1:
        report("Nothing to undo", code="NOTHING_TO_UNDO")
        return ExitStatus.NOT_FOUND
    if not wants_json():
        _print_plan(plan)
    if plan.later and not (force or dry_run):
        report(
            f"{format_count(len(plan.later), 'later change')} to the same items would be overwritten",
            "use --force to undo anyway; that can be undone too",
            code="LATER_CHANGES",
        )
        return ExitStatus.CONFLICT
    if not dry_run:
        if not confirm("Undo these changes?", yes=yes):
            return ExitStatus.REFUSED
        options.run(lambda session: session.workspace.history.undo(session.caller, selection, seen=plan.seen))
    effects = undo_effects(plan.changes)
    data = {
        "undone": not dry_run,
        "entities": [{**change_data(item, projects), "effect": effect} for item, effect in effects],
        "overwrites": [change_data(item, projects) for item in plan.later],
    }
    done = f"Undid {format_count(plan.total, 'change')}. To redo, run: dittybag undo"
    print_result(data, *([] if dry_run else [done]))
    return ExitStatus.OK


async def _plan(
    session: WorkspaceSession, selection: UndoSelection, project: str | None
) -> tuple[UndoSelection, UndoPlan, dict[int, str]]:
    project_id = await find_project_id(session, project)
    if selection.seq is None:
        selection = replace(selection, project=project_id)
    plan = await session.workspace.history.plan_undo(session.caller, selection)
    return selection, plan, await project_names(session)


def _print_plan(plan: UndoPlan) -> None:
    lines = [
        f"{effect} {change.kind} {click.style(clip_line(change.label, 60), bold=True)}"
        f"  ({change.verb} by {clip_line(change.actor, 40)}, change {change.seq})"
        for change, effect in undo_effects(plan.changes)
    ]
    print_lines(lines, _MAX_LINES, "more item")
    for change in plan.later[:_MAX_LINES]:
        overwritten = f"{change.kind} {change.verb} by {clip_line(change.actor, 40)}"
        click.secho(f"overwrites change {change.seq}: {overwritten}", fg="yellow")
