"""`dittybag library`: manage prompt libraries."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from dittybag.cli import stored_names
from dittybag.cli.error_output import ExitStatus, report_error, wants_json
from dittybag.cli.library_read_commands import check, list_libraries, show
from dittybag.cli.output import format_path, json_option, print_aside, print_result, progress
from dittybag.cli.strict_options import StrictGroup
from dittybag.config import home
from dittybag.domain.display import format_count
from dittybag.domain.errors import DittybagError, LibraryEdited, LibraryExists, LibraryTooLarge
from dittybag.domain.text import one_line

if TYPE_CHECKING:
    from dittybag.assembly.local_libraries import AddResult, UpdateResult

#: At most this many files are printed; `--json` has all of them.
_MAX_LINES: Final = 10


@click.group("library", StrictGroup)
def command() -> None:
    """Manage prompt libraries."""


command.add_command(list_libraries)
command.add_command(show)
command.add_command(check)


@command.command("add")
@click.argument("source")
@click.option("--name", metavar="NAME", help="Name of the library (default: name of the source).")
@click.option("--folder", metavar="FOLDER", help="Add only this folder of the source.")
@click.option("--link", is_flag=True, help="Link to the folder instead of copying it.")
@json_option
def add(source: str, name: str | None, folder: str | None, *, link: bool) -> None:
    """Add a library from a folder or a Git repository.

    To select a branch, tag or commit of a repository, append it to the URL after `#`, as in
    https://example.org/prompts.git#v2. Files are only copied, never executed.

    \b
    Examples:
      dittybag library add ~/prompts --link
      dittybag library add https://example.org/prompts.git#v2 --name team
    """
    from dittybag.assembly.local_libraries import installer

    try:
        with progress() as show_progress:
            added = installer.add(
                home(os.environ), source, name=name, folder=folder, link=link, progress=show_progress
            )
    except LibraryExists as error:
        error.add_note("choose another name with --name")
        error.add_note(f"to update the existing library, run: dittybag library update {error.name}")
        raise
    except LibraryTooLarge as error:
        is_folder = os.path.isdir(os.path.expanduser(source))  # noqa: PTH111, PTH112
        linked = "it" if is_folder else "a folder that you cloned or unpacked"
        error.add_note("to add only a part of it, name a folder with --folder FOLDER")
        error.add_note(f"to read {linked} in place, run: dittybag library add FOLDER --link")
        raise
    verb = "Linked" if link else "Added"
    count = "" if link else f" in {format_count(added.files, 'file')}"
    origin = f"from {added.record.location}"
    prompts = _count_prompts(added)
    message = f"{verb} library '{added.name}' {origin}: {format_count(prompts, 'prompt')}{count}"
    _print_added(added, message, prompts)


def _count_prompts(added: AddResult) -> int:
    """Return the number of prompts in a library that was just added."""
    from dittybag.assembly.local_libraries import with_libraries

    reports = with_libraries(home(os.environ), lambda libraries: libraries.reports(), alone=added.path)
    return sum(report.prompts for report in reports)


@command.command("new")
@click.argument("name", shell_complete=stored_names.libraries)
@json_option
def new(name: str) -> None:
    """Create a library with an example prompt.

    \b
    Example:
      dittybag library new team
    """
    from dittybag.assembly.local_libraries import installer

    try:
        added = installer.create(home(os.environ), name)
    except LibraryExists as error:
        error.add_note("choose another name, or edit the existing library")
        raise
    _print_added(added, f"Created library '{added.name}'", _count_prompts(added))


@command.command("update")
@click.argument("name", required=False, shell_complete=stored_names.libraries)
@click.option(
    "--overwrite", is_flag=True, help="Replace a library that you edited; yours is moved to another folder."
)
@json_option
def update(name: str | None, *, overwrite: bool) -> int:
    """Update the library NAME from its source, or all libraries.

    A library that you edited is not changed, and the exit status is 4. With --overwrite, it is replaced and
    your version is moved to another folder.

    \b
    Examples:
      dittybag library update
      dittybag library update team --overwrite
    """
    if name is not None:
        updated = _update(name, overwrite=overwrite)
        print_result(updated, *_updated_lines(updated))
        return ExitStatus.OK
    return _update_all(overwrite=overwrite)


@command.command("remove")
@click.argument("name", shell_complete=stored_names.libraries)
@click.option(
    "--yes",
    is_flag=True,
    help="Remove it even if it has local edits or no source; it is moved to another folder.",
)
@json_option
def remove(name: str, *, yes: bool) -> None:
    """Remove a library. The folder of a linked library is not touched.

    \b
    Example:
      dittybag library remove team
    """
    from dittybag.assembly.local_libraries import installer

    try:
        removed = installer.remove(home(os.environ), name, discard_edits=yes)
    except LibraryEdited as error:
        error.add_note(f"to move it to another folder, run: dittybag library remove {error.name} --yes")
        raise
    what = ""
    if removed.link:
        what = f"; its folder {format_path(removed.path)} was not touched"
    elif removed.kept_in is not None:
        what = f"; its folder was moved to {format_path(removed.kept_in)}"
    print_result(removed, f"Removed library '{removed.name}'{what}")


def _update(name: str, *, overwrite: bool) -> UpdateResult:
    from dittybag.assembly.local_libraries import installer

    try:
        with progress() as show_progress:
            return installer.update(home(os.environ), name, overwrite=overwrite, progress=show_progress)
    except LibraryEdited as error:
        command = f"dittybag library update {error.name} --overwrite"
        error.add_note(f"to install the source and move yours to another folder, run: {command}")
        error.add_note(
            "to keep yours, add the source under another name: dittybag library add SOURCE --name NAME"
        )
        raise


def _update_all(*, overwrite: bool) -> int:
    """Update all libraries that have a source. An error in one does not stop the others."""
    from dittybag.assembly.local_libraries import install_records

    status: int = ExitStatus.OK
    rows: list[Any] = []
    for name, origin in install_records.read_records(home(os.environ)).items():
        if origin.kind in ("link", "new"):
            continue
        try:
            updated = _update(name, overwrite=overwrite)
        except DittybagError as error:
            rows.append({"name": name, "error": {"code": error.code, "message": str(error)}})
            status = status or report_error(error)
            continue
        rows.append(updated)
        if not wants_json():
            click.echo("\n".join(_updated_lines(updated)))
    print_result({"libraries": rows})
    if not rows:
        print_aside("No libraries to update")
    return status


def _print_added(added: AddResult, message: str, prompts: int) -> None:
    check = f"dittybag library check {added.name}"
    print_result(
        {
            "name": added.name,
            "path": added.path,
            "kind": added.record.kind,
            "source": added.record.location,
            "folder": added.record.folder,
            "revision": added.record.revision,
            "files": added.files,
            "prompts": prompts,
            "left_out": added.left_out,
        },
        message,
        f"  {format_path(added.path)}",
        *_file_lines("Skipped:", [f"{item.file}: {item.reason}" for item in added.left_out]),
        f"hint: to check it, run: {check}" if prompts else f"hint: to see why, run: {check} --skipped",
    )


def _updated_lines(updated: UpdateResult) -> list[str]:
    if updated.note is not None:
        return [f"Library '{updated.name}' {updated.note}"]
    changes = {"added": updated.added, "changed": updated.changed, "removed": updated.removed}
    counts = ", ".join(f"{len(files)} {word}" for word, files in changes.items() if files)
    lines = [f"Library '{updated.name}' {f'updated: {counts}' if counts else 'is up to date'}"]
    return [*lines, f"Your version is now in {updated.kept_in}"] if updated.kept_in is not None else lines


def _file_lines(title: str, files: Sequence[str]) -> list[str]:
    if not files:
        return []
    lines = [title, *(f"  {one_line(file, 1000)}" for file in files[:_MAX_LINES])]
    return lines if len(files) <= _MAX_LINES else [*lines, f"  and {len(files) - _MAX_LINES} more"]
