"""`dittybag import`: import an export, another program's database, or files."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, get_args

import click
from msgspec import UNSET

from dittybag import files
from dittybag.cli.error_output import wants_json
from dittybag.cli.import_output import print_notes, report_problems
from dittybag.cli.output import print_json, progress, report_section
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_project, temporary_workspace
from dittybag.config import Settings, local_user_name
from dittybag.domain.display import format_count
from dittybag.domain.errors import (
    DittybagError,
    Invalid,
    SeveralConflicts,
    SourceFailed,
    TaskCycle,
    UnknownFormat,
)
from dittybag.domain.imports import FORMATS, TASK_FORMATS, ImportOptions, ImportResult, OnConflict
from dittybag.domain.projects import AUTOMATIC


@click.command("import", StrictCommand)
@click.argument("source")
@click.option(
    "--as",
    "form",
    type=click.Choice(list(FORMATS)),
    metavar="FORMAT",
    help=f"Format of the source, if it is not detected: {', '.join(FORMATS)}.",
)
@click.option(
    "--on-conflict",
    type=click.Choice(get_args(OnConflict)),
    default="fail",
    show_default=True,
    help="What to do with items whose name is already in use.",
)
@click.option(
    "--verbatim",
    is_flag=True,
    help="Keep {{ variables }} in prompt files and CSV files as text instead of making them arguments.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be imported, and change nothing.")
@in_project
def command(
    source: str,
    form: str | None,
    on_conflict: OnConflict,
    options: WorkspaceOptions,
    *,
    verbatim: bool,
    dry_run: bool,
) -> int | None:
    """Import SOURCE. If it contains errors, nothing is imported, except from files of prompts.

    SOURCE is a file or folder written by `dittybag export`; a SQLite database of prompt-store or Dittybag; a
    CSV file of prompts with the columns act and prompt; or a file or folder of prompts in any library format.
    `-` reads standard input. From files of prompts, the valid prompts are imported and the others are listed.

    SOURCE can also be the tasks of another program, with their states and dependencies: a CSV file with the
    column title, a tasks.json of task-master, a JSONL export of beads, JSON of GitHub's issues, a folder of
    Backlog.md, or a project's folder that contains one of these. The members of the project share the tasks;
    without --project, they are yours alone.

    With --project, everything is imported into that project. Items that already exist are skipped, so a
    second import changes nothing. One `dittybag undo` undoes the whole import. Tasks of an export keep their
    numbers if the workspace is new.

    \b
    Examples:
      dittybag import everything.json
      dittybag import prompts.csv -p writing --dry-run
      dittybag import ~/.prompt-store/prompts.db --on-conflict rename
      dittybag import .beads/issues.jsonl -p team
    """
    from dittybag.assembly.import_export import source_file
    from dittybag.exchange.source_detection import detect_format

    try:
        with source_file(source) as path:
            found = form or detect_format(path)
            if found not in TASK_FORMATS:
                imported = _import_data(path, found, on_conflict, options, verbatim=verbatim, dry_run=dry_run)
            elif on_conflict != "fail" or verbatim:
                raise click.UsageError("--on-conflict and --verbatim have no effect on tasks.")
            else:
                imported = _import_tasks(path, found, options, dry_run=dry_run)
    except (Invalid, SeveralConflicts, SourceFailed, TaskCycle) as error:
        return _report_import_error(error)
    except OSError as error:
        return _report_import_error(SourceFailed(source, files.describe(error)))
    if wants_json():
        print_json(_data(imported, dry_run=dry_run))
    else:
        _print_summary(imported, dry_run=dry_run)
    return None


def _import_data(
    path: str,
    format: str,
    on_conflict: OnConflict,
    options: WorkspaceOptions,
    *,
    verbatim: bool,
    dry_run: bool,
) -> ImportResult:
    from dittybag.assembly.import_export import import_data

    with _settings(options, dry_run=dry_run) as given, progress() as show:
        settings = options.with_project_name(given, create=not dry_run)
        import_options = ImportOptions(
            actor=settings.actor or local_user_name(),
            project=settings.project if options.project == AUTOMATIC else options.project,
            default_project=settings.project,
            on_conflict=on_conflict,
            dry_run=dry_run,
        )
        return import_data(
            settings,
            path,
            import_options,
            format=format,
            verbatim=verbatim,
            on_progress=lambda *counts: report_section(show, "Importing", *counts),
        )


def _import_tasks(path: str, format: str, options: WorkspaceOptions, *, dry_run: bool) -> ImportResult:
    from dittybag.assembly.import_export import import_tasks

    # Without a name, the tasks belong to the project of the session, if it is not the default project.
    project = UNSET if options.project in (None, AUTOMATIC) else options.project
    with progress() as show:
        show("Importing tasks")
        return options.run(
            lambda session: import_tasks(session, path, format, project, dry_run=dry_run),
            create=not dry_run,
        )


def _settings(options: WorkspaceOptions, *, dry_run: bool) -> AbstractContextManager[Settings]:
    """The settings; a dry run uses a temporary workspace instead of creating a missing one."""
    from dittybag.assembly.store_factory import is_missing

    settings = options.settings
    return (
        temporary_workspace(settings) if dry_run and is_missing(settings.database) else nullcontext(settings)
    )


def _report_import_error(error: DittybagError) -> int:
    lines, hints = [str(error)], []
    if isinstance(error, Invalid):
        lines = [problem.message for problem in error.problems]
    if isinstance(error, UnknownFormat):
        hints = [f"--as {name}: {description}" for name, description in FORMATS.items()]
    elif isinstance(error, SeveralConflicts):
        lines = [str(conflict) for conflict in error.conflicts]
        hints = ["use --on-conflict skip, replace or rename"]
    elif isinstance(error, TaskCycle):
        hints = ["remove one of these dependencies from the source, then import it again"]
    return report_problems(error, lines, hints)


def _data(result: ImportResult, *, dry_run: bool) -> dict[str, Any]:
    return {
        "format": result.format,
        "dry_run": dry_run,
        "imported": {f"{kind}s": count for kind, count in result.created.items()},
        "replaced": {f"{kind}s": count for kind, count in result.replaced.items()},
        "skipped": {f"{kind}s": count for kind, count in result.skipped.items()},
        "renamed": [{"kind": item.kind, "from": item.old, "to": item.new} for item in result.renamed],
        "conflicts": [{"code": item.code, "message": str(item)} for item in result.conflicts],
        "notes": result.notes,
    }


def _print_summary(result: ImportResult, *, dry_run: bool) -> None:
    click.echo(f"{'Would import' if dry_run else 'Imported'} {_counts(result.created) or 'nothing'}")
    if replaced := _counts(result.replaced):
        click.echo(f"{'Would replace' if dry_run else 'Replaced'} {replaced}")
    if skipped := _counts(result.skipped):
        click.echo(f"{'Would skip' if dry_run else 'Skipped'} {skipped}")
    print_notes("Renamed:", [f"{item.kind} '{item.old}' is now '{item.new}'" for item in result.renamed])
    print_notes("Conflicts:", [str(conflict) for conflict in result.conflicts])
    print_notes("Notes:", result.notes)


def _counts(counts: dict[Any, int]) -> str:
    counted = [format_count(count, kind) for kind, count in counts.items() if count]
    return " and ".join([", ".join(counted[:-1]), counted[-1]] if len(counted) > 1 else counted)
