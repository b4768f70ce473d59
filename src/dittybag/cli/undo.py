"""`dittybag undo`: undo the last change, or several changes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from dittybag.cli.change_output import change_data
from dittybag.cli.error_output import ExitStatus, report
from dittybag.cli.history import project_names
from dittybag.cli.output import clip_line, json_option, print_json
from dittybag.cli.param_types import PastTime
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.changes import undo_effects
from dittybag.domain.display import format_count
from dittybag.services.history_service import UndoPlan, UndoSelection

if TYPE_CHECKING:
    from dittybag.assembly.workspace_session import WorkspaceSession

#: At most this many lines of a plan are printed; `--json` has all of them.
_MAX_LINES = 20


class _Plan(Struct, frozen=True):
    """What an undo would do, and the names of projects."""

    undo: UndoPlan
    projects: dict[int, str]

    def rows(self) -> list[dict[str, Any]]:
        effects = undo_effects(self.undo.changes)
        return [{**change_data(change, self.projects), "effect": effect} for change, effect in effects]


@click.command("undo", StrictCommand)
@click.argument("change", type=click.IntRange(1), required=False)
@click.option("--last", type=click.IntRange(1, 10_000), metavar="N", help="Undo the last N changes.")
@click.option("--actor", metavar="NAME", help="Undo changes by this user or client; requires --since.")
@click.option(
    "--since", type=PastTime(), metavar="WHEN", help="Undo all changes since then: 2h, yesterday, 2026-11-15."
)
@click.option("-p", "--project", metavar="NAME", help="Only changes in this project, and to tasks.")
@click.option("--dry-run", is_flag=True, help="Show what would be undone, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--force", is_flag=True, help="Undo even if that overwrites later changes.")
@in_workspace
@json_option
def command(
    change: int | None,
    options: WorkspaceOptions,
    *,
    last: int | None,
    actor: str | None,
    since: int | None,
    project: str | None,
    dry_run: bool,
    yes: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Undo the last change, the change numbered CHANGE, or several changes.

    Changes that were made together are undone together. An undo can itself be undone with `dittybag undo`.
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

    async def select(session: WorkspaceSession) -> UndoSelection:
        project_id = None if project is None else (await session.workspace.projects.find(project)).id
        if change is not None:
            return UndoSelection(seq=change)
        number = (last or 1) if since is None else None
        return UndoSelection(project=project_id, last=number, actor=actor, since=since)

    async def make_plan(session: WorkspaceSession) -> _Plan:
        plan = await session.workspace.history.plan_undo(session.caller, await select(session))
        return _Plan(plan, await project_names(session))

    async def undo(session: WorkspaceSession) -> None:
        await session.workspace.history.undo(session.caller, await select(session), seen=plan.undo.seen)

    plan = options.run(make_plan)
    # Change 1 created the workspace itself.
    if not plan.undo.changes or change == 1:
        report("Nothing to undo", code="NOTHING_TO_UNDO")
        return ExitStatus.NOT_FOUND
    if not as_json:
        _print_plan(plan)
    if dry_run:
        return _print_result(plan, undone=False, as_json=as_json)
    if plan.undo.later and not force:
        report(
            f"{format_count(len(plan.undo.later), 'later change')} to the same items would be overwritten",
            "use --force to undo anyway; that can be undone too",
            code="LATER_CHANGES",
        )
        return ExitStatus.CONFLICT
    if not yes and not _confirm(as_json=as_json):
        return ExitStatus.REFUSED
    options.run(undo)
    return _print_result(plan, undone=True, as_json=as_json)


def _print_plan(plan: _Plan) -> None:
    effects = undo_effects(plan.undo.changes)
    for change, effect in effects[:_MAX_LINES]:
        name = clip_line(change.label, 60)
        click.echo(
            f"{effect} {change.kind} {click.style(name, bold=True)}"
            f"  ({change.action} by {clip_line(change.actor, 40)}, change {change.seq})"
        )
    if len(effects) > _MAX_LINES:
        click.echo(f"and {format_count(len(effects) - _MAX_LINES, 'more item')}")
    for change in plan.undo.later[:_MAX_LINES]:
        click.secho(
            f"overwrites change {change.seq}: {change.action} {change.kind} by {clip_line(change.actor, 40)}",
            fg="yellow",
        )


def _confirm(*, as_json: bool) -> bool:
    if as_json or not sys.stdin.isatty():
        report(
            "Confirmation is required", "use --yes to confirm, or --dry-run to preview", code="NOT_CONFIRMED"
        )
        return False
    return click.confirm("Undo these changes?", err=True)


def _print_result(plan: _Plan, *, undone: bool, as_json: bool) -> int:
    if as_json:
        later: Sequence[Any] = [change_data(change, plan.projects) for change in plan.undo.later]
        print_json({"undone": undone, "entities": plan.rows(), "overwrites": later})
    elif undone:
        click.echo(f"Undid {format_count(plan.undo.total, 'change')}. To redo, run: dittybag undo")
    return ExitStatus.OK
