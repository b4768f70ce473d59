"""`dittybag task import`: import the tasks of another program."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET

from dittybag.cli.error_output import wants_json
from dittybag.cli.output import hint, print_json, progress
from dittybag.cli.read_input import text
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.display import format_count
from dittybag.domain.errors import Invalid, SourceFailed, TaskCycle, UnknownFormat
from dittybag.domain.imports import TASK_FORMATS
from dittybag.domain.projects import AUTOMATIC
from dittybag.domain.tasks import STATUSES, Task

if TYPE_CHECKING:
    from dittybag.domain.task_drafts import TaskImport
    from dittybag.exchange.task_sources import TasksRead


@click.command("import", StrictCommand, short_help="Import the tasks of another program.")
@click.argument("source", type=text)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(TASK_FORMATS)),
    help="Format of the source (default: detected).",
)
@click.option("--dry-run", is_flag=True, help="Show what would be imported, and change nothing.")
@in_project
def import_tasks(source: str, form: str | None, options: WorkspaceOptions, *, dry_run: bool) -> int | None:
    """Import the tasks of another program, with their states and dependencies: all of them or none.

    SOURCE is a CSV file, a tasks.json of task-master, a JSONL export of beads, JSON of GitHub's issues, or a
    folder of Backlog.md. It may also be a project's folder that contains one of these. `-` reads standard
    input.

    The members of the project share the tasks. Without a project, they are yours alone.

    Tasks that were imported before stay as they are, so a second import changes nothing. One `dittybag undo`
    undoes the whole import.

    \b
    Examples:
      dittybag task import .beads/issues.jsonl -p team
      dittybag task import . --dry-run
      gh issue list --state all --limit 1000 --json \\
        number,title,body,state,stateReason,labels,assignees,comments,url | dittybag task import -
    """
    from dittybag.assembly.task_import import read_foreign_tasks

    # Without a name, the tasks belong to the project of the session, if it is not the default project.
    name = UNSET if options.project in (None, AUTOMATIC) else options.project
    try:
        with progress() as show:
            show("Reading tasks")
            found = read_foreign_tasks(source, form)
            show(f"Importing {format_count(len(found.drafts), 'task')}")
            result = options.run(
                lambda session: session.workspace.tasks.import_drafts(
                    session.caller, found.drafts, name, dry_run=dry_run
                ),
                create=not dry_run,
            )
    except (Invalid, SourceFailed, TaskCycle) as error:
        return _report(error)
    if wants_json():
        print_json(_data(found, result, dry_run=dry_run))
    else:
        _print_summary(found, result, dry_run=dry_run)
    return None


def _report(error: Invalid | SourceFailed | TaskCycle) -> int:
    from dittybag.cli.import_output import report_problems

    lines = [problem.message for problem in error.problems] if isinstance(error, Invalid) else [str(error)]
    hints: list[str] = []
    if isinstance(error, UnknownFormat):
        hints = [f"--format {name}: {description}" for name, description in TASK_FORMATS.items()]
    elif isinstance(error, TaskCycle):
        hints = ["remove one of these dependencies from the source, then import it again"]
    return report_problems(error, lines, hints)


def _data(found: TasksRead, result: TaskImport, *, dry_run: bool) -> dict[str, Any]:
    return {
        "format": found.format,
        "dry_run": dry_run,
        "imported": len(result.created),
        "known": result.known,
        "tasks": [_task_data(task) for task in result.created],
        "notes": found.notes,
    }


def _task_data(task: Task) -> dict[str, Any]:
    return {
        "id": task.id or None,
        "title": task.title,
        "status": task.status,
        "project": task.project,
        "parent": task.parent,
        "blocked_by": task.blocked_by,
        "source": task.links[-1],
    }


def _print_summary(found: TasksRead, result: TaskImport, *, dry_run: bool) -> None:
    from dittybag.cli.import_output import print_notes

    created, known = result.created, format_count(result.known, "task")
    if created:
        statuses = Counter(task.status for task in created)
        counts = ", ".join(f"{statuses[status]:,} {status}" for status in STATUSES if statuses[status])
        where = f" into project '{created[0].project}'" if created[0].project else ""
        verb = "Would import" if dry_run else "Imported"
        click.echo(f"{verb} {format_count(len(created), 'task')}{where}: {counts}")
        if result.known:
            click.echo(f"Imported before and left as it is: {known}")
    elif result.known:
        click.echo(f"Nothing changed: {known} imported before")
    else:
        click.echo("Nothing to import: the source has no tasks")
    if not created:
        return
    print_notes("Notes:", found.notes)
    if not dry_run:
        hint("to undo the import, run: dittybag undo")
