"""`dittybag purge`: remove content for good, with its history."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

import click

from dittybag.cli import stored_names
from dittybag.cli.error_output import ExitStatus, report_error, wants_json
from dittybag.cli.history import find_project_id, project_names
from dittybag.cli.output import clip_line, confirm, note, print_aside, print_lines, print_result
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.display import format_count
from dittybag.domain.entities import ENTITY_TYPES, Kind
from dittybag.domain.errors import AmbiguousReference, PurgeUnfinished

if TYPE_CHECKING:
    from dittybag.services.purge_service import PurgeItem, Selection
    from dittybag.services.workspace import WorkspaceSession

#: At most this many lines of a plan are printed; `--json` has all of them.
_MAX_LINES: Final = 20
_RESUME: Final = "run `dittybag purge --resume` to finish it"


@click.command("purge", StrictCommand)
@click.argument("ref", required=False, shell_complete=stored_names.items)
@click.option("--kind", type=click.Choice(tuple(ENTITY_TYPES)), help="The kind of REF.")
@click.option("--keep-current", is_flag=True, help="Purge only the history, and keep the current version.")
@click.option("--resume", is_flag=True, help="Finish a purge that was interrupted.")
@click.option("--dry-run", is_flag=True, help="Show what would be purged, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@in_project
def command(
    ref: str | None,
    options: WorkspaceOptions,
    *,
    kind: Kind | None,
    keep_current: bool,
    resume: bool,
    dry_run: bool,
    yes: bool,
) -> int:
    """Remove an item for good, with its history, or only its history.

    REF is the name, title or id of a prompt, the name or URI of a resource, the name of a project, or
    `task:12`. Deleted items can be named, too. A project is purged with its prompts, resources and tasks.

    A purge cannot be undone. The history keeps that something was purged, by whom and when. Backups, exports
    and copies are not changed.

    \b
    Examples:
      dittybag purge code-review --dry-run
      dittybag purge task:12
      dittybag purge code-review --keep-current
    """
    if resume:
        return _resume(options)
    if ref is None:
        raise click.UsageError("Give REF or --resume.")
    try:
        selection, items, projects = options.run(
            lambda session: _plan(session, ref, kind, options.project, keep_current=keep_current)
        )
    except AmbiguousReference as error:
        return report_error(error, "use --kind and --project to choose one")
    if not wants_json():
        _print_plan(items)
    if dry_run or not items:
        return _print_purged(items, projects, purged=False)
    if not confirm("Remove this for good? It cannot be undone.", yes=yes):
        return ExitStatus.REFUSED
    try:
        items = options.run(lambda session: session.workspace.purges.run(session.caller, selection))
    except PurgeUnfinished as error:
        return report_error(error, _RESUME)
    _print_purged(items, projects, purged=True)
    _name_backups(options)
    return ExitStatus.OK


async def _plan(
    session: WorkspaceSession, ref: str, kind: Kind | None, project: str | None, *, keep_current: bool
) -> tuple[Selection, list[PurgeItem], dict[int, str]]:
    from dittybag.services.purge_references import PurgeReferences
    from dittybag.services.purge_service import Selection

    project_id = await find_project_id(session, project)
    found = await PurgeReferences(session.workspace.store).find(ref, kind=kind, project=project_id)
    selection = Selection(found, keep_current=keep_current)
    items = await session.workspace.purges.plan(session.caller, selection)
    return selection, items, await project_names(session)


def _resume(options: WorkspaceOptions) -> int:
    try:
        finished = options.run(lambda session: session.workspace.purges.finish())
    except PurgeUnfinished as error:
        return report_error(error, _RESUME)
    print_result(
        {"finished": finished}, "Finished the interrupted purge" if finished else "No purge was interrupted"
    )
    return ExitStatus.OK


def _print_plan(items: list[PurgeItem]) -> None:
    lines = [
        f"{'delete and purge' if item.deletes else 'purge'} {item.kind} "
        f"{click.style(clip_line(item.label, 60), bold=True)}: {format_count(item.versions, 'version')}"
        for item in items
    ]
    print_lines(lines, _MAX_LINES, "more item")


def _print_purged(items: list[PurgeItem], projects: dict[int, str], *, purged: bool) -> int:
    versions = sum(item.versions for item in items)
    entities = [_item_data(item, projects) for item in items]
    done = f"Purged {format_count(versions, 'version')} of {format_count(len(items), 'item')}"
    print_result({"purged": purged, "versions": versions, "entities": entities}, *([done] if purged else []))
    if not items:
        print_aside("Nothing to purge")
    return ExitStatus.OK


def _name_backups(options: WorkspaceOptions) -> None:
    """Say that automatic backups still contain what was purged."""
    from dittybag.assembly.store_factory import is_file
    from dittybag.assembly.stored_backups import stored_backups

    settings = options.settings
    if is_file(settings.database) and (found := stored_backups(settings)):
        made = format_count(len(found), "backup")
        note(f"{made} may still contain it; to delete them, run: rm {shlex.join(one.file for one in found)}")


def _item_data(item: PurgeItem, projects: dict[int, str]) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "id": item.id,
        "name": item.label,
        "project": None if item.project is None else projects.get(item.project),
        "deletes": item.deletes,
        "versions": item.versions,
    }
