"""`dittybag undo`: undo the last change, or several changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from dittybag.cli.change_output import change_data
from dittybag.cli.error_output import ExitStatus, report, wants_json
from dittybag.cli.history import project_names
from dittybag.cli.output import clip_line, confirm, print_lines, print_result
from dittybag.cli.param_types import past_time
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.changes import Change, require_content, undo_effects
from dittybag.domain.display import format_count

if TYPE_CHECKING:
    from dittybag.assembly.workspace_session import WorkspaceSession

#: At most this many lines of a plan are printed; `--json` has all of them.
_MAX_LINES = 20
#: At most this many changes are undone by one command.
_MAX_CHANGES = 100_000


class _Plan(Struct, frozen=True):
    """The changes to undo, newest first, and later changes to the same entities."""

    changes: list[Change]
    later: list[Change]
    projects: dict[int, str]

    def rows(self) -> list[dict[str, Any]]:
        return [
            {**change_data(change, self.projects), "effect": effect}
            for change, effect in undo_effects(self.changes)
        ]


@click.command("undo", StrictCommand)
@click.argument("change", type=click.IntRange(1), required=False)
@click.option("--last", type=click.IntRange(1, 10_000), metavar="N", help="Undo the last N changes.")
@click.option("--actor", metavar="NAME", help="Undo changes by this user or client; requires --since.")
@click.option(
    "--since", type=past_time, metavar="WHEN", help="Undo all changes since then: 2h, yesterday, 2026-11-15."
)
@click.option("-p", "--project", metavar="NAME", help="Only changes in this project, and to tasks.")
@click.option("--dry-run", is_flag=True, help="Show what would be undone, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--force", is_flag=True, help="Undo even if that overwrites later changes.")
@in_workspace
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

    async def make_plan(session: WorkspaceSession) -> _Plan:
        history = session.workspace.history
        project_id = None if project is None else (await session.workspace.projects.find(project)).id
        if change is not None:
            found = [await history.get(change)]
        elif since is not None:
            found = await history.page_all(project_id, actor=actor, since=since, limit=_MAX_CHANGES)
        else:
            found = await _last_changes(session, project_id, last or 1)
        # Change 1 created the workspace itself.
        together = await history.batches_of(change for change in found if change.seq > 1)
        require_content(together)
        return _Plan(together, await history.later_changes(together), await project_names(session))

    plan = options.run(make_plan)
    if not plan.changes:
        report("Nothing to undo", code="NOTHING_TO_UNDO")
        return ExitStatus.NOT_FOUND
    if not wants_json():
        _print_plan(plan)
    if dry_run:
        return _print_result(plan, undone=False)
    if plan.later and not force:
        report(
            f"{format_count(len(plan.later), 'later change')} to the same items would be overwritten",
            "use --force to undo anyway; that can be undone too",
            code="LATER_CHANGES",
        )
        return ExitStatus.CONFLICT
    if not confirm("Undo these changes?", yes=yes):
        return ExitStatus.REFUSED
    options.run(
        lambda session: session.workspace.history.undo_all(
            plan.changes, actor=session.caller.actor, overwriting=plan.later
        )
    )
    return _print_result(plan, undone=True)


async def _last_changes(session: WorkspaceSession, project: int | None, count: int) -> list[Change]:
    """Return the newest change of each of the last `count` batches."""
    found: dict[int, Change] = {}
    before: int | None = None
    while len(found) < count:
        page = await session.workspace.history.page_all(project, before=before, limit=1000)
        if not page:
            break
        for change in page:
            if len(found) < count:
                found.setdefault(change.batch, change)
        before = page[-1].seq
    return list(found.values())


def _print_plan(plan: _Plan) -> None:
    lines = [
        f"{effect} {change.kind} {click.style(clip_line(change.label, 60), bold=True)}"
        f"  ({change.verb} by {clip_line(change.actor, 40)}, change {change.seq})"
        for change, effect in undo_effects(plan.changes)
    ]
    print_lines(lines, _MAX_LINES, "more item")
    for change in plan.later[:_MAX_LINES]:
        overwritten = f"{change.kind} {change.verb} by {clip_line(change.actor, 40)}"
        click.secho(f"overwrites change {change.seq}: {overwritten}", fg="yellow")


def _print_result(plan: _Plan, *, undone: bool) -> int:
    later = [change_data(change, plan.projects) for change in plan.later]
    done = f"Undid {format_count(len(plan.changes), 'change')}. To redo, run: dittybag undo"
    data = {"undone": undone, "entities": plan.rows(), "overwrites": later}
    print_result(data, *([done] if undone else []))
    return ExitStatus.OK
