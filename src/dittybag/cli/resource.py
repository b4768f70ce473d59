"""`dittybag resource`: manage resources, text or binary."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from dittybag import files
from dittybag.cli import stored_names
from dittybag.cli.colours import GREY
from dittybag.cli.error_output import ExitStatus, wants_json
from dittybag.cli.output import (
    clip_line,
    format_time,
    note,
    paged,
    print_deleted,
    print_json,
    print_list,
    print_rest,
    print_result,
    write_text,
)
from dittybag.cli.prompt_read_commands import projects_hint
from dittybag.cli.read_input import STREAM, label, read_bytes, refuse, text, usage_error
from dittybag.cli.strict_options import StrictGroup, option_group
from dittybag.cli.table import Column
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.display import format_count, format_size
from dittybag.domain.entities import to_data
from dittybag.domain.errors import Conflict, Invalid
from dittybag.domain.mime_types import guess_mime_type
from dittybag.domain.resources import CONTENT_BYTES, Resource
from dittybag.services.resource_service import ResourceChange

if TYPE_CHECKING:
    from dittybag.services.workspace import WorkspaceSession

_COLUMNS: Final = (
    Column("name"),
    Column("type", shrink="cut", rank=2),
    Column("size", right=True),
    Column("uri", shrink="cut", rank=3),
    Column("updated", rank=1),
    Column("title", shrink="cut", extra=True),
)


@click.group("resource", StrictGroup)
def command() -> None:
    """Manage resources, text or binary."""


#: The options for the parts of a resource.
_resource_options: Final = option_group(
    click.option("--name", metavar="NAME", type=text, help="Name of the resource."),
    click.option("--uri", metavar="URI", type=text, help="URI; with {variables}, it is a URI template."),
    click.option("--mime-type", metavar="TYPE", type=text, help="MIME type, such as text/markdown."),
    click.option("--title", metavar="TEXT", type=text, help="Title."),
    click.option("--description", metavar="TEXT", type=text, help="Description of the resource."),
)


@command.command("add")
@click.argument("sources", metavar="FILE|FOLDER...", nargs=-1, required=True)
@_resource_options
@click.option("--skip-existing", is_flag=True, help="Skip files whose name is already in use.")
@in_project
def add(
    sources: tuple[str, ...], options: WorkspaceOptions, *, skip_existing: bool, **parts: str | None
) -> None:
    """Add copies of files as resources, all of them or none. `-` reads standard input.

    By default, a resource has the name of the file, the URI dittybag://resources/NAME and a MIME type
    guessed from the file. The options that name and describe a resource require a single file.

    Of a folder, all files below it are added, except hidden files and links. The path of a file becomes its
    name: docs/api/users.md is docs-api-users.md. At most 1,000 files of 64 MB together are added at once.
    One `dittybag undo` undoes it.

    \b
    Examples:
      dittybag resource add docs/api.md --title "API documentation"
      dittybag resource add logo.png --uri file:///logo.png
      dittybag resource add README.md CHANGELOG.md docs/
      pg_dump --schema-only shop | dittybag resource add - --name schema.sql
    """
    is_one = len(sources) == 1 and not os.path.isdir(sources[0])  # noqa: PTH112
    given = [name for name, value in parts.items() if value is not None]
    if is_one and not skip_existing:
        _add_one(sources[0], options, **parts)
    elif given:
        option = "--" + given[0].replace("_", "-")
        usage_error(f"{option} requires a single file", "add the files without it, or one by one")
    else:
        _add_several(sources, options, skip_existing=skip_existing)


def _add_one(
    file: str,
    options: WorkspaceOptions,
    *,
    name: str | None,
    uri: str | None,
    mime_type: str | None,
    **texts: str | None,
) -> None:
    from dittybag.cli.resource_files import own_name

    if name is None and file == STREAM:
        usage_error("Standard input has no file name", "name the resource with --name")
    chosen = name if name is not None else own_name(file)
    content = read_bytes(file, CONTENT_BYTES)
    kind = (
        mime_type if mime_type is not None else guess_mime_type(chosen if file == STREAM else file, content)
    )
    resource, _ = options.run(
        lambda session: session.workspace.resources.create(
            session.caller,
            name=chosen,
            uri=uri if uri is not None else f"dittybag://resources/{chosen}",
            content=content,
            mime_type=kind,
            **texts,
        ),
        create=True,
    )
    _print_saved(resource, "Added")


def _add_several(sources: tuple[str, ...], options: WorkspaceOptions, *, skip_existing: bool) -> None:
    from dittybag.cli.import_output import report_problems
    from dittybag.cli.resource_files import find_files, read_files

    drafts = read_files(find_files(sources))
    try:
        created, skipped = options.run(
            lambda session: session.workspace.resources.create_all(
                session.caller, drafts, skip_existing=skip_existing
            ),
            create=True,
        )
    except (Invalid, Conflict) as error:
        lines = [str(each) for each in getattr(error, "conflicts", ())]
        lines = lines or [problem.message for problem in getattr(error, "problems", ())] or [str(error)]
        hints = ["use --skip-existing to add only the others"] if isinstance(error, Conflict) else []
        raise click.exceptions.Exit(
            report_problems(error, lines, hints, nothing="Nothing was added:")
        ) from error
    print_result(
        {
            "resources": [to_data(resource) for resource in created],
            "skipped": [draft.name for draft in skipped],
        },
        *(f"Added resource '{resource.name}' ({_about(resource)})" for resource in created),
    )
    if skipped:
        note(f"{format_count(len(skipped), 'resource')} skipped: the name is already in use")


@command.command("list")
@paged
@in_project
def list_resources(options: WorkspaceOptions, limit: int) -> None:
    """List resources, most recently updated first.

    \b
    Example:
      dittybag resource list
    """
    resources = options.run(lambda session: session.workspace.resources.all(session.caller))
    resources.sort(key=lambda resource: (-resource.updated_at, -resource.number))
    page = resources[:limit]
    print_list(
        {"resources": [to_data(resource) for resource in page], "total": len(resources)},
        _COLUMNS,
        [_row(item) for item in page],
        empty=(
            "No resources yet",
            "to add a resource, run: dittybag resource add FILE",
            *(() if resources else projects_hint(options, "resources")),
        ),
        cell_styles=lambda row, name: {"fg": GREY if name == "updated" else None},
    )
    print_rest(len(page), len(resources))


def _row(resource: Resource) -> tuple[str, ...]:
    return (
        resource.name,
        clip_line(resource.mime_type),
        format_size(resource.size),
        clip_line(resource.uri),
        format_time(resource.updated_at),
        clip_line(resource.title or resource.description or ""),
    )


@command.command("show")
@click.argument("name", metavar="NAME|URI", type=text, shell_complete=stored_names.resources)
@click.option("-o", "--output", metavar="FILE", help="Write to a file; `-` is standard output.")
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
@in_project
def show(name: str, options: WorkspaceOptions, *, output: str | None, force: bool) -> None:
    """Print a resource, or write it to a file.

    If the output is a file or a pipe, the content is written byte for byte.

    \b
    Examples:
      dittybag resource show api.md
      dittybag resource show logo.png -o logo.png
    """
    resource, content = options.run(lambda session: _read(session, name))
    if output is not None and output != STREAM:
        _write_file(output, content, force=force)
        _print_saved(resource, "Wrote", to=f" to {label(output)}")
    elif wants_json():
        print_json({**to_data(resource), **_content_data(resource, content)})
    elif output == STREAM or not sys.stdout.isatty():
        click.echo(content, nl=False)
    elif resource.is_text:
        write_text(content.decode())
    else:
        refuse(
            f"Resource '{resource.name}' is binary ({resource.mime_type}) and would garble the terminal",
            f"to write it to a file, run: dittybag resource show {resource.name} --output FILE",
        )


async def _read(session: WorkspaceSession, name: str) -> tuple[Resource, bytes]:
    found = await session.workspace.resources.get(session.caller, name)
    return await session.workspace.resources.read(session.caller, found.uri)


def _content_data(resource: Resource, content: bytes) -> dict[str, str]:
    from base64 import b64encode

    return {"text": content.decode()} if resource.is_text else {"blob": b64encode(content).decode()}


def _write_file(file: str, content: bytes, *, force: bool) -> None:
    """Write a file atomically; replace an existing file only with `force`."""
    from pathlib import Path

    # Write through a symbolic link instead of replacing it.
    target = Path(os.path.realpath(file))
    if target.is_file() and not force:
        refuse(
            f"{label(file)} already exists",
            "use --force to overwrite it",
            status=ExitStatus.CONFLICT,
            code="CONFLICT",
        )
    try:
        if target.exists() and not target.is_file():
            # A device or a pipe must not be replaced by a regular file.
            target.write_bytes(content)
            return
        with files.atomic_write(target, mode=0o666) as stream:
            if target.exists():
                os.fchmod(stream.fileno(), target.stat().st_mode & 0o7777)
            stream.write(content)
    except OSError as error:
        refuse(f"{label(file)} could not be written: {error.strerror}")


@command.command("edit")
@click.argument("reference", metavar="NAME|URI", type=text, shell_complete=stored_names.resources)
@click.argument("file", required=False)
@_resource_options
@in_project
def edit(reference: str, file: str | None, options: WorkspaceOptions, **parts: str | None) -> None:
    """Change a resource. Fields that are not given stay the same.

    FILE replaces the content; `-` reads standard input. Without FILE and options, a text opens in your
    editor. If someone else changes the resource in the meantime, it is not overwritten: both versions are
    shown, and your text is kept in a file.

    \b
    Examples:
      dittybag resource edit api.md
      dittybag resource edit api.md docs/api.md
      dittybag resource edit api.md --title "The API" --name api
    """
    given: dict[str, Any] = {part: value for part, value in parts.items() if value is not None}
    if file is not None:
        given["content"] = read_bytes(file, CONTENT_BYTES)
    if not given:
        _edit_text(options, reference)
        return
    resource = options.run(lambda session: _update(session, reference, ResourceChange(**given)))
    _print_saved(resource, "Updated")


def _edit_text(options: WorkspaceOptions, reference: str) -> None:
    from dittybag.cli.editor import edit_text, require_terminal

    require_terminal("give FILE or an option; `-` reads standard input")
    resource, text = _read_text(options, reference)
    stem, ending = os.path.splitext(resource.name)  # noqa: PTH122  # pathlib is slow to import
    saved = edit_text(
        stem,
        text,
        lambda new: options.run(
            lambda session: _update(
                session, resource.uri, ResourceChange(content=new.encode()), version=resource.version
            )
        ),
        max_bytes=CONTENT_BYTES,
        resume=f"dittybag resource edit {resource.name}",
        stored=lambda: _read_text(options, resource.uri)[1],
        ending=ending or ".txt",
    )
    if saved is None:
        print_result(to_data(resource), f"Resource '{resource.name}' is unchanged")
    else:
        _print_saved(saved, "Updated")


def _read_text(options: WorkspaceOptions, reference: str) -> tuple[Resource, str]:
    """Return a resource and its text; exit if it is binary."""
    resource, content = options.run(lambda session: _read(session, reference))
    if not resource.is_text:
        refuse(
            f"Resource '{resource.name}' is binary ({resource.mime_type}) and cannot be edited as text",
            f"to replace it, run: dittybag resource edit {resource.name} FILE",
        )
    return resource, content.decode()


async def _update(
    session: WorkspaceSession, reference: str, change: ResourceChange, *, version: int | None = None
) -> Resource:
    found = await session.workspace.resources.get(session.caller, reference)
    changed, _ = await session.workspace.resources.update(session.caller, found.name, change, version=version)
    return changed


@command.command("delete")
@click.argument(
    "names",
    metavar="NAME|URI...",
    type=text,
    nargs=-1,
    required=True,
    shell_complete=stored_names.resources,
)
@in_project
def delete(names: tuple[str, ...], options: WorkspaceOptions) -> None:
    """Delete resources, all of them or none.

    `dittybag undo` restores them.

    \b
    Example:
      dittybag resource delete api.md
    """
    deleted = options.run(lambda session: session.workspace.resources.delete_all(session.caller, names))
    print_deleted(
        [{"id": resource.id, "name": resource.name} for resource in deleted],
        [f"Deleted resource '{resource.name}'" for resource in deleted],
    )


def _print_saved(resource: Resource, verb: str, *, to: str = "") -> None:
    print_result(to_data(resource), f"{verb} resource '{resource.name}'{to} ({_about(resource)})")


def _about(resource: Resource) -> str:
    return f"{clip_line(resource.mime_type)}, {format_size(resource.size)}"
