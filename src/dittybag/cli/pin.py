"""`dittybag pin` and `unpin`: choose what agents always get in the context packs of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from dittybag.cli import stored_names
from dittybag.cli.output import clip_line, print_list, print_result, terminal_safe
from dittybag.cli.read_input import text
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_project

if TYPE_CHECKING:
    from dittybag.assembly.workspace_session import LibrarySession
    from dittybag.services.pin_service import PinnedItem
    from dittybag.services.workspace import WorkspaceSession


@click.command("pin", StrictCommand)
@click.argument("ref", type=text, required=False, shell_complete=stored_names.items)
@click.option("--list", "is_list", is_flag=True, help="List what is pinned to the project.")
@in_project
def command(ref: str | None, options: WorkspaceOptions, *, is_list: bool) -> None:
    """Pin a prompt, resource, task or library prompt to a project.

    Pinned items are in every context pack of the project, as far as the budget of the pack allows, so that
    agents have them from the start. REF is a name, a URI, `task:12` or `library:prompt`.

    \b
    Examples:
      dittybag pin coding-style
      dittybag pin task:12
      dittybag pin --list
    """
    if is_list == (ref is not None):
        raise click.UsageError("Give either REF or --list")
    if ref is None:
        _print_pins(options.run(lambda session: session.workspace.pins.all(session.caller)))
        return
    item, is_changed = _change(options, ref, is_pinned=True)
    print_result(
        {**asdict(item), "changed": is_changed},
        f"Pinned {_name_of(item)}" if is_changed else f"{_name_of(item)} is already pinned",
    )


@click.command("unpin", StrictCommand)
@click.argument("ref", type=text, shell_complete=stored_names.items)
@in_project
def unpin_command(ref: str, options: WorkspaceOptions) -> None:
    """Unpin a prompt, resource, task or library prompt.

    \b
    Example:
      dittybag unpin coding-style
    """
    item, is_changed = _change(options, ref, is_pinned=False)
    print_result(
        {**asdict(item), "changed": is_changed},
        f"Unpinned {_name_of(item)}" if is_changed else f"{_name_of(item)} is not pinned",
    )


def _change(options: WorkspaceOptions, ref: str, *, is_pinned: bool) -> tuple[PinnedItem, bool]:
    async def change(session: WorkspaceSession, library: LibrarySession | None) -> tuple[PinnedItem, bool]:
        pins = session.workspace.pins
        write = pins.add if is_pinned else pins.remove
        name = ref.removeprefix("library:")
        found = None if library is None else await library.libraries.find(name)
        return await write(session.caller, ref, found)

    if ":" in ref:
        return options.run_with_libraries(lambda library: change(library.session, library))
    return options.run(lambda session: change(session, None))


def _name_of(item: PinnedItem) -> str:
    reference = clip_line(item.ref)
    return reference if item.kind == "task" or item.title is None else f"{item.kind} {reference}"


def _print_pins(items: list[PinnedItem]) -> None:
    missing = "(deleted or not visible)"
    print_list(
        {"pins": [asdict(item) for item in items]},
        ("kind", "ref", "title"),
        [
            (item.kind, terminal_safe(item.ref), item.title or ("" if item.kind == "library" else missing))
            for item in items
        ],
        empty=("Nothing is pinned", "to pin an item, run: dittybag pin REF"),
    )
