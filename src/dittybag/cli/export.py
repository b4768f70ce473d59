"""`dittybag export`: everything in one file, or in a folder of readable files."""

from __future__ import annotations

import errno
import os
import sys

import click

from dittybag.cli.error_output import ExitStatus, report
from dittybag.cli.output import format_count, json_option, print_json, progress
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace


@click.command("export")
@click.argument("target", metavar="FILE|FOLDER|-", default="-")
@click.option("-p", "--project", "project_name", metavar="NAME", help="Only this project, with its tasks.")
@click.option(
    "--format", "form", type=click.Choice(["json", "folder"]), help="Else by the name of the target."
)
@click.option(
    "--history/--no-history", default=None, help="With all changes of the past; a file is, a folder is not."
)
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@in_workspace
@json_option
def command(
    target: str,
    form: str | None,
    options: WorkspaceOptions,
    *,
    history: bool | None,
    force: bool,
    as_json: bool,
) -> int | None:
    """Write everything to one file, or to a folder of readable files.

    A name that ends in .json, or `-` for standard output, means one JSON file, with the history: imported
    into an empty workspace, it makes it the same again. Any other name means a folder of Markdown files and
    documents, made for Git: exporting there again changes only the files of what has changed.

    \b
    Example:
      dittybag export everything.json
      dittybag export ~/notes/dittybag
      dittybag export website.json -p website
    """
    folder = form == "folder" if form else target != "-" and not target.lower().endswith(".json")
    _check(target, folder=folder, as_json=as_json)
    from dittybag.assembly.import_export import Conflict, export

    try:
        with progress() as show:
            counts = export(
                options.settings,
                target,
                folder=folder,
                project=options.project,
                history=history if history is not None else not folder,
                overwrite=force,
                tell=show and (lambda what, number: show(f"Exporting {what}: {number:,}")),
            )
    except OSError as error:
        return _report_write_error(target, error)
    except Conflict as error:
        hint = "choose another folder" if folder else "choose another name, or --force to overwrite it"
        report(str(error), hint, code=error.code)
        return ExitStatus.CONFLICT
    _print_summary(target, counts, as_json=as_json)
    return None


def _check(target: str, *, folder: bool, as_json: bool) -> None:
    if target != "-":
        return
    if folder:
        raise click.UsageError("a folder needs a name")
    if as_json:
        raise click.UsageError("what is exported is JSON already: --json goes with a file or a folder")
    if sys.stdout.isatty():
        raise click.UsageError("say where to: FILE.json or a FOLDER, or send standard output elsewhere")


def _report_write_error(target: str, error: OSError) -> int:
    if error.errno == errno.EPIPE:
        # Whoever read has heard enough; Python would complain about it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.REFUSED
    hint = (
        "make room on the disk and try again"
        if error.errno in (errno.ENOSPC, errno.EDQUOT)
        else "check the path and its permissions"
    )
    report(f"{target} could not be written: {error.strerror or error}", hint, code="STORAGE_FAILED")
    return ExitStatus.STORAGE


def _print_summary(target: str, counts: dict[str, int], *, as_json: bool) -> None:
    if as_json:
        print_json({"target": target, **counts})
        return
    words = [format_count(counts[kind], kind.removesuffix("s")) for kind in ("prompts", "resources", "tasks")]
    past = f", with {format_count(counts['changes'], 'change')} of history" if counts["changes"] else ""
    files = f"; {format_count(counts['files'], 'file')} changed" if "files" in counts else ""
    click.echo(
        f"Exported {', '.join(words[:-1])} and {words[-1]} to {target}{past}{files}", err=target == "-"
    )
