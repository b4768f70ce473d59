"""`dittybag import`: import an export, another program's database, or files."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import click

from dittybag.cli.error_output import ExitStatus, exit_status, report, wants_json
from dittybag.cli.output import clip_line, print_json, progress
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace, temporary_workspace
from dittybag.config import Settings, local_user_name
from dittybag.domain.display import format_count
from dittybag.domain.errors import DittybagError, Invalid, SeveralConflicts, SourceFailed

if TYPE_CHECKING:
    from dittybag.assembly.import_export import ImportReport, OnConflict

#: At most this many conflicts, renamed items and notes are printed.
_MAX_LINES: Final = 20
_MAX_LENGTH: Final = 300

_FORMATS: Final = (
    "json",
    "folder",
    "database",
    "prompt-store",
    "mcpkg",
    "task-manager",
    "csv",
    "library",
)


@click.command("import", StrictCommand)
@click.argument("source")
@click.option("-p", "--project", "project_name", metavar="NAME", help="Import everything into this project.")
@click.option("--as", "form", type=click.Choice(_FORMATS), help="Format of the source (default: detected).")
@click.option(
    "--on-conflict",
    type=click.Choice(["fail", "skip", "replace", "rename"]),
    default="fail",
    show_default=True,
    help="What to do with items whose name is already in use.",
)
@click.option(
    "--verbatim",
    is_flag=True,
    help="Keep {{ variables }} in prompt files and CSV files as text instead of making them arguments.",
)
@click.option("--no-history", is_flag=True, help="Import only the current state, without the history.")
@click.option("--dry-run", is_flag=True, help="Show what would be imported, and change nothing.")
@in_workspace
def command(
    source: str,
    form: str | None,
    on_conflict: OnConflict,
    options: WorkspaceOptions,
    *,
    verbatim: bool,
    no_history: bool,
    dry_run: bool,
) -> int | None:
    """Import SOURCE. If it contains errors, nothing is imported, except from files of prompts.

    SOURCE is a file or folder written by `dittybag export`; a SQLite database of prompt-store, mcpkg, the
    task manager or Dittybag; a CSV file of prompts with the columns act and prompt; or a file or folder of
    prompts in any library format. `-` reads standard input. From files of prompts, the valid prompts are
    imported and the others are listed.

    Importing an export into an empty workspace restores it exactly, with its history. Otherwise, items are
    added: items that already exist are skipped, and one `dittybag undo` undoes the whole import.

    \b
    Examples:
      dittybag import everything.json
      dittybag import prompts.csv -p writing --dry-run
      dittybag import ~/.prompt-store/prompts.db --on-conflict rename
    """
    from dittybag.assembly.import_export import import_data

    try:
        with _settings(options, dry_run=dry_run) as settings, progress() as show:
            imported = import_data(
                settings,
                source,
                actor=settings.actor or local_user_name(),
                format=form,
                project=options.project,
                on_conflict=on_conflict,
                history=not no_history,
                verbatim=verbatim,
                dry_run=dry_run,
                on_progress=(lambda what, number: show(f"Importing {what}: {number:,}")),
            )
    except (Invalid, SeveralConflicts, SourceFailed) as error:
        return _report_import_error(error)
    except OSError as error:
        return _report_import_error(SourceFailed(source, (error.strerror or str(error)).lower()))
    if wants_json():
        print_json(_data(imported, dry_run=dry_run))
    else:
        _print_summary(imported, dry_run=dry_run)
    return None


def _settings(options: WorkspaceOptions, *, dry_run: bool) -> AbstractContextManager[Settings]:
    """The settings; a dry run uses a temporary workspace instead of creating a missing one."""
    from dittybag.assembly.store_factory import is_missing

    settings = options.settings
    return (
        temporary_workspace(settings) if dry_run and is_missing(settings.database) else nullcontext(settings)
    )


def _report_import_error(error: DittybagError) -> int:
    hints = []
    if isinstance(error, Invalid):
        lines = [problem.message for problem in error.problems]
        if any("the history" in line for line in lines):
            hints.append("use --no-history to import only the current state")
        if any("cannot be imported" in line for line in lines):
            hints = _format_hints()
    elif isinstance(error, SeveralConflicts):
        lines = [str(conflict) for conflict in error.conflicts]
        hints.append("use --on-conflict skip, replace or rename")
    else:
        lines = [str(error)]
    if len(lines) > 1:
        more = [f"and {len(lines) - _MAX_LINES} more"] if len(lines) > _MAX_LINES + 1 else []
        lines = ["Nothing was imported:", *_indent([*lines[: _MAX_LINES + 1 - len(more)], *more])]
    else:
        lines = [clip_line(line, _MAX_LENGTH) for line in lines]
    report("\n".join(lines), *hints, code=error.code)
    return ExitStatus.CONFLICT if isinstance(error, SeveralConflicts) else exit_status(error)


def _format_hints() -> list[str]:
    from dittybag.assembly.import_export import FORMATS

    return [f"--as {name}: {description}" for name, description in FORMATS.items()]


def _indent(lines: list[str]) -> list[str]:
    return [f"  {clip_line(line, _MAX_LENGTH)}" for line in lines]


def _data(imported: ImportReport, *, dry_run: bool) -> dict[str, Any]:
    result = imported.result
    return {
        "format": imported.format,
        "dry_run": dry_run,
        "imported": {f"{kind}s": count for kind, count in result.created.items()},
        "replaced": {f"{kind}s": count for kind, count in result.replaced.items()},
        "skipped": {f"{kind}s": count for kind, count in result.skipped.items()},
        "renamed": [{"kind": item.kind, "from": item.old, "to": item.new} for item in result.renamed],
        "conflicts": [{"code": item.code, "message": str(item)} for item in result.conflicts],
        "changes": result.changes,
        "exact": result.exact,
        "notes": imported.notes,
    }


def _print_summary(imported: ImportReport, *, dry_run: bool) -> None:
    result = imported.result
    would = "Would import" if dry_run else "Imported"
    past = f", with {format_count(result.changes, 'change')} of history" if result.changes else ""
    click.echo(f"{would} {_counts(result.created) or 'nothing'}{past}")
    for word, counts in (("replace", result.replaced), ("skip", result.skipped)):
        if any(counts.values()):
            past_form = {"replace": "Replaced", "skip": "Skipped"}[word]
            click.echo(f"{f'Would {word}' if dry_run else past_form} {_counts(counts)}")
    _print_lines("Renamed:", [f"{item.kind} '{item.old}' is now '{item.new}'" for item in result.renamed])
    if result.conflicts:
        _print_lines("Conflicts:", [str(conflict) for conflict in result.conflicts])
    _print_lines("Notes:", imported.notes)
    if imported.has_history and not result.exact:
        click.echo(
            "note: the history was not imported; it requires an empty workspace and no --project", err=True
        )


def _counts(counts: dict[Any, int]) -> str:
    counted = [format_count(count, kind) for kind, count in counts.items() if count]
    return " and ".join([", ".join(counted[:-1]), counted[-1]] if len(counted) > 1 else counted)


def _print_lines(title: str, lines: list[str]) -> None:
    if not lines:
        return
    click.echo(title, err=True)
    for line in _indent(lines[:_MAX_LINES]):
        click.echo(line, err=True)
    if len(lines) > _MAX_LINES:
        click.echo(f"  and {len(lines) - _MAX_LINES} more; --json prints all", err=True)
