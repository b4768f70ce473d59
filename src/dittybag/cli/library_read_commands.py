"""`dittybag library list`, `show` and `check`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from dittybag.cli import stored_names
from dittybag.cli.colours import AMBER
from dittybag.cli.error_output import ExitStatus, wants_json
from dittybag.cli.output import clip_line, format_path, hint, json_option, print_json, print_list
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.table import Column, print_table
from dittybag.config import home, known_libraries
from dittybag.domain.display import format_count
from dittybag.domain.errors import LibraryNotFound
from dittybag.domain.libraries import LibraryPrompt, LibraryReport, library_name

if TYPE_CHECKING:
    from dittybag.assembly.local_libraries import LibraryService

T = TypeVar("T")


@click.command("list", StrictCommand)
@json_option
def list_libraries() -> None:
    """List all libraries with their number of prompts.

    \b
    Example:
      dittybag library list
    """
    # Also what only a check of the templates finds, so that the numbers are those of `check`.
    reports = _with_libraries(lambda libraries: libraries.check())
    kinds = _install_kinds()
    rows = [
        (
            item.name or "(none)",
            str(item.prompts),
            ", ".join(item.formats) or "-",
            kinds.get(item.name, "by hand"),
            str(len(item.problems) or "-"),
            format_path(item.folder),
        )
        for item in reports
    ]
    print_list(
        {"libraries": [_library_data(item, kinds.get(item.name)) for item in reports]},
        (
            Column("library"),
            Column("prompts", right=True),
            Column("formats", shrink="cut", rank=1),
            Column("from"),
            Column("problems", right=True),
            Column("folder", shrink="cut", extra=True),
        ),
        rows,
        empty=(
            "No libraries yet",
            "to add one, run: dittybag library add FOLDER, or dittybag library new NAME",
        ),
        cell_styles=lambda row, name: {"fg": AMBER if name == "problems" and reports[row].problems else None},
    )
    if any(item.problems for item in reports):
        hint("for details, run: dittybag library check")


@click.command("show", StrictCommand)
@click.argument("name", shell_complete=stored_names.libraries)
@json_option
def show(name: str) -> None:
    """Show the library NAME, or the prompt NAME:PROMPT.

    \b
    Examples:
      dittybag library show team
      dittybag library show team:code-review
    """
    if ":" in name:
        _show_prompt(name)
    else:
        _show_library(name)


def _show_prompt(name: str) -> None:
    prompt, file, text = _with_libraries(lambda libraries: libraries.source(name))
    if wants_json():
        print_json({**_prompt_data(prompt), "file": file, "text": text})
        return
    click.secho(prompt.name, bold=True)
    if prompt.description:
        click.echo(clip_line(prompt.description))
    for argument in prompt.arguments:
        need = "required" if argument.required else "optional"
        about = f": {clip_line(argument.description)}" if argument.description else ""
        click.echo(f"  {argument.name} ({need}){about}")
    click.secho(file, dim=True)
    click.echo()
    click.echo(text, nl=not text.endswith("\n"))


def _show_library(name: str) -> None:
    async def find(libraries: LibraryService) -> tuple[LibraryReport, Sequence[LibraryPrompt]]:
        wanted = library_name(name)
        chosen = next((item for item in await libraries.reports() if item.name == wanted and wanted), None)
        if chosen is None:
            raise LibraryNotFound(name)
        return chosen, await libraries.prompts(wanted)

    report, prompts = _with_libraries(find)
    if wants_json():
        about = _library_data(report, _install_kinds().get(report.name))
        about |= {"problems": report.problems, "skipped": report.skipped}
        print_json({**about, "prompts": [_prompt_data(prompt) for prompt in prompts]})
        return
    click.secho(f"{report.name}  {format_path(report.folder)}", bold=True)
    rows = [
        (
            prompt.name,
            " ".join(item.name if item.required else f"[{item.name}]" for item in prompt.arguments),
            clip_line(prompt.description or ""),
        )
        for prompt in prompts
    ]
    print_table(("prompt", "arguments", "description"), rows, shrinkable=(1, 2))
    _print_problems([report])
    if report.skipped:
        click.echo(
            f"{len(report.skipped)} other files; to list them: dittybag library check {report.name} --skipped"
        )


@click.command("check", StrictCommand)
@click.argument("name", required=False, shell_complete=stored_names.libraries)
@click.option("--skipped", is_flag=True, help="Also list files without prompts, with the reason.")
@json_option
def check(name: str | None, *, skipped: bool) -> int:
    """Check libraries for problems.

    NAME is a library or a folder; by default, all libraries are checked. The exit status is 1 if there are
    errors.

    \b
    Examples:
      dittybag library check
      dittybag library check ./prompts --skipped
    """
    reports = _check_reports(name)
    problems = [item for report in reports for item in report.problems]
    errors = sum(item.level == "error" for item in problems)
    warnings = len(problems) - errors
    if wants_json():
        fields = ("name", "folder", "prompts", "problems", "skipped")
        rows = [{field: getattr(report, field) for field in fields} for report in reports]
        print_json({"libraries": rows, "errors": errors, "warnings": warnings})
    else:
        _print_problems(reports)
        others = [(report.folder, *file) for report in reports for file in report.skipped.items()]
        for folder, file, reason in others if skipped else ():
            click.echo(f"{os.path.join(folder, file)}: {reason}")  # noqa: PTH118
        prompts = sum(report.prompts for report in reports)
        totals = f"{format_count(len(reports), 'library', 'libraries')}, {format_count(prompts, 'prompt')}"
        found = f"{format_count(errors, 'error')}, {format_count(warnings, 'warning')}"
        if others and not skipped:
            found += f", {format_count(len(others), 'other file')} (use --skipped to list them)"
        click.secho(f"{totals}: {found}", fg="red" if errors else "yellow" if warnings else "green")
    return ExitStatus.REFUSED if errors else ExitStatus.OK


def _check_reports(name: str | None) -> list[LibraryReport]:
    if name is not None and (os.sep in name or name == "." or os.path.isdir(name)):  # noqa: PTH112
        folder = os.path.abspath(os.path.expanduser(name))  # noqa: PTH100, PTH111
        if not os.path.isdir(folder):  # noqa: PTH112
            raise LibraryNotFound(name)
        return _with_libraries(lambda libraries: libraries.check(), alone=folder)
    reports = _with_libraries(lambda libraries: libraries.check())
    if name is None:
        return reports
    chosen = [item for item in reports if item.name and item.name == library_name(name)]
    if not chosen:
        raise LibraryNotFound(name)
    return chosen


def _with_libraries(work: Callable[[LibraryService], Awaitable[T]], *, alone: str | None = None) -> T:
    from dittybag.assembly.local_libraries import with_libraries

    return with_libraries(home(os.environ), work, extra=known_libraries(os.environ), alone=alone)


def _install_kinds() -> dict[str, str]:
    """Return the kind of source of each installed library by name."""
    from dittybag.assembly.local_libraries import install_records

    return {name: origin.kind for name, origin in install_records.read_records(home(os.environ)).items()}


def _library_data(item: LibraryReport, origin: str | None) -> dict[str, Any]:
    return {
        "name": item.name,
        "folder": item.folder,
        "from": origin or "by hand",
        "prompts": item.prompts,
        "formats": item.formats,
        "problems": len(item.problems),
    }


def _prompt_data(prompt: LibraryPrompt) -> dict[str, Any]:
    arguments = [msgspec.to_builtins(argument) for argument in prompt.arguments]
    return {
        "name": prompt.name,
        "title": prompt.title,
        "description": prompt.description,
        "arguments": arguments,
    }


def _print_problems(reports: Iterable[LibraryReport]) -> None:
    for item in reports:
        for problem in item.problems:
            place = os.path.join(item.folder, problem.file).rstrip(os.sep)  # noqa: PTH118
            line = "" if problem.line is None else f":{problem.line}"
            level = click.style(problem.level, fg="red" if problem.level == "error" else "yellow")
            click.echo(f"{place}{line}: {level}: {clip_line(problem.message, 500)}")
