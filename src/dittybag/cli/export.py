"""`dittybag export`: write a workspace, or prompts as skills, to files."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from dittybag.cli.error_output import ExitStatus, report, wants_json
from dittybag.cli.output import (
    hint,
    note,
    print_json,
    print_result,
    progress,
    report_section,
    terminal_safe,
)
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.display import format_count
from dittybag.domain.errors import Conflict
from dittybag.domain.projects import AUTOMATIC

if TYPE_CHECKING:
    from dittybag.assembly.import_export import SkillsExport


@click.command("export", StrictCommand)
@click.argument("target", metavar="FILE|FOLDER|-", default="-")
@click.option(
    "--as",
    "form",
    type=click.Choice(["json", "folder", "skills"]),
    help="Output format (default: depends on the target).",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@in_project
def command(
    target: str,
    form: str | None,
    options: WorkspaceOptions,
    *,
    force: bool,
) -> int | None:
    """Export a workspace to a JSON file or a folder of readable files, or prompts as Agent Skills.

    A target that ends in .json, or `-` for standard output, is one JSON file. Any other target is a folder
    of Markdown files and resources that is suitable for Git: exporting to it again rewrites only the files
    that changed. With --project, only that project and its tasks are exported. An export has no history;
    `dittybag backup` keeps it.

    With --as skills, each prompt of the project and each skill of the libraries becomes a folder with a
    SKILL.md, as clients read it. The target must be new, empty or an earlier export of skills; files that
    somebody has edited stay as they are.

    \b
    Examples:
      dittybag export everything.json
      dittybag export ~/notes/dittybag
      dittybag export website.json -p website
      dittybag export --as skills .agents/skills -p auto
    """
    folder = form != "json" if form else target != "-" and not target.lower().endswith(".json")
    _check(target, folder=folder)
    from dittybag.assembly.import_export import export, export_skills

    try:
        if form == "skills":
            _print_skills(target, options.run_with_libraries(lambda session: export_skills(session, target)))
            return None
        with options.existing_settings() as settings, progress() as show:
            counts = export(
                settings,
                target,
                folder=folder,
                project=options.project_name if options.project == AUTOMATIC else options.project,
                overwrite=force,
                on_progress=lambda *counts: report_section(show, "Exporting", *counts),
            )
    except OSError as error:
        return _report_write_error(target, error)
    except Conflict as error:
        hint = "choose another folder" if folder else "choose another name, or use --force to overwrite it"
        report(str(error), hint, code=error.code)
        return ExitStatus.CONFLICT
    _print_summary(target, counts)
    return None


def _check(target: str, *, folder: bool) -> None:
    if target != "-":
        return
    if folder:
        raise click.UsageError("A folder export requires a folder name")
    if wants_json():
        raise click.UsageError("--json requires a file or a folder as the target: the export itself is JSON")
    if sys.stdout.isatty():
        raise click.UsageError("Choose a target: FILE.json or a FOLDER, or redirect standard output")


def _report_write_error(target: str, error: OSError) -> int:
    if error.errno == errno.EPIPE:
        # The reader closed the pipe. Without this, Python reports an error when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.REFUSED
    hint = (
        "free some disk space and try again"
        if error.errno in (errno.ENOSPC, errno.EDQUOT)
        else "check the path and its permissions"
    )
    report(f"{target} could not be written: {error.strerror or error}", hint, code="STORAGE_FAILED")
    return ExitStatus.STORAGE


def _print_skills(target: str, done: SkillsExport) -> None:
    print_result(
        {"target": target, **asdict(done)},
        f"Exported {format_count(done.skills, 'skill')} to {target}; "
        f"{format_count(done.files, 'file')} changed",
    )
    for reason in done.left_out:
        note(terminal_safe(reason))
    for path in done.kept:
        note(f"{terminal_safe(f'{target}/{path}')} was edited and stays as it is")
    if done.kept:
        hint("to get the stored version of a file, delete it and export again")


def _print_summary(target: str, counts: dict[str, int]) -> None:
    if wants_json():
        print_json({"target": target, **counts})
        return
    counted = [
        format_count(counts[kind], kind.removesuffix("s")) for kind in ("prompts", "resources", "tasks")
    ]
    files = f"; {format_count(counts['files'], 'file')} changed" if "files" in counts else ""
    click.echo(f"Exported {', '.join(counted[:-1])} and {counted[-1]} to {target}{files}", err=target == "-")
