"""`dittybag resource edit`: the text of a resource in the editor."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from dittybag.cli.output import print_result
from dittybag.cli.prompt_edit import draft_option
from dittybag.cli.read_input import refuse, text
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.display import format_size
from dittybag.domain.entities import to_data
from dittybag.domain.resources import CONTENT_BYTES, Resource
from dittybag.services.resource_service import ResourceChange

if TYPE_CHECKING:
    from dittybag.services.workspace import WorkspaceSession


@click.command("edit", StrictCommand)
@click.argument("name", metavar="NAME|URI", type=text)
@draft_option
@in_project
def edit(name: str, options: WorkspaceOptions, draft: str | None) -> None:
    """Edit the text of a resource in your editor.

    If someone else changes the resource in the meantime, it is not overwritten: both versions are shown, and
    your text is kept in a file. `dittybag resource update` changes the other fields.

    \b
    Example:
      dittybag resource edit api.md
    """
    from dittybag.cli.editor import EditorFile, read_draft

    resource, before = read_text_resource(options, name)
    stem, ending = os.path.splitext(resource.name)  # noqa: PTH122  # pathlib is slow to import
    file = EditorFile(
        stem,
        before if draft is None else read_draft(draft, CONTENT_BYTES),
        is_terminated=before.endswith("\n"),
        ending=ending or ".txt",
    )

    def store(text: str) -> Resource | None:
        if text == before:
            return None
        change = ResourceChange(content=text.encode())
        changed, _ = options.run(
            lambda session: session.workspace.resources.update(
                session.caller, resource.name, change, version=resource.version
            )
        )
        return changed

    saved = file.edit(
        store,
        max_bytes=CONTENT_BYTES,
        versions=lambda text: (read_text_resource(options, resource.name)[1], text),
        resume=f"dittybag resource edit {resource.name}",
    )
    if saved is None:
        print_result(to_data(resource), f"Resource '{resource.name}' is unchanged")
    else:
        print_result(to_data(saved), f"Updated resource '{saved.name}' ({format_size(saved.size)})")


def read_text_resource(options: WorkspaceOptions, name: str) -> tuple[Resource, str]:
    """Return a resource and its text; exit if it is binary."""

    async def read(session: WorkspaceSession) -> tuple[Resource, bytes]:
        found = await session.workspace.resources.get(session.caller, name)
        return await session.workspace.resources.read(session.caller, found.uri)

    resource, content = options.run(read)
    if not resource.is_text:
        refuse(
            f"Resource '{resource.name}' is binary ({resource.mime_type}) and cannot be edited as text",
            f"to replace it, run: dittybag resource update {resource.name} FILE",
        )
    return resource, content.decode()
