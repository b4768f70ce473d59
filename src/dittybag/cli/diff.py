"""`dittybag diff`: show the differences that a change made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from dittybag.cli.change_output import change_data
from dittybag.cli.error_output import ExitStatus, report, wants_json
from dittybag.cli.history import project_names
from dittybag.cli.output import clip_line, print_diff, print_result
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.changes import Change, Purged
from dittybag.domain.entities import Entity, type_of
from dittybag.domain.errors import ChangePurged
from dittybag.domain.resources import Resource
from dittybag.domain.times import iso
from dittybag.services.history_service import Comparison
from dittybag.text_diff import unified_lines

if TYPE_CHECKING:
    from dittybag.services.workspace import WorkspaceSession


@click.command("diff", StrictCommand)
@click.argument("change", type=click.IntRange(1))
@click.argument("other", type=click.IntRange(1), required=False)
@in_workspace
def command(change: int, other: int | None, options: WorkspaceOptions) -> int:
    """Show what CHANGE modified, or how an item differs between CHANGE and OTHER.

    CHANGE and OTHER are numbers from `dittybag history`.

    \b
    Examples:
      dittybag diff 42
      dittybag diff 17 42
    """
    found, projects = options.run(lambda session: _read(session, change, other))
    first, last = found.first, found.last
    if last is not None and (first.kind, first.entity) != (last.kind, last.entity):
        report(
            f"Changes {first.seq} and {last.seq} are to different items",
            f"for the changes to the first item, run: dittybag history {first.entity}",
            code="DIFFERENT_THINGS",
        )
        return ExitStatus.REFUSED
    shown = last or first
    old = _fields(first, found.before, found.old)
    new = _fields(shown, found.after, found.new)
    names = [name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)]
    if wants_json():
        fields = {name: {"before": old.get(name), "after": new.get(name)} for name in names}
        print_result({"change": change_data(shown, projects), "fields": fields})
        return ExitStatus.OK
    click.secho(f"{shown.kind} {clip_line(shown.label)}", bold=True)
    click.secho(f"{shown.verb} by {clip_line(shown.actor)}, {iso(shown.at)}", dim=True)
    print_diff(line for name in names for line in _diff_lines(name, old.get(name), new.get(name)))
    if not names:
        click.echo("No visible differences", err=True)
    return ExitStatus.OK


async def _read(
    session: WorkspaceSession, change: int, other: int | None
) -> tuple[Comparison, dict[int, str]]:
    return await session.workspace.history.compare(session.caller, change, other), await project_names(
        session
    )


def _fields(change: Change, entity: Entity | Purged | None, content: bytes | None) -> dict[str, str]:
    """Return the fields that have a value, as text; for a resource, its content instead of the checksum."""
    if isinstance(entity, Purged):
        raise ChangePurged(change.seq, entity.by, entity.at)
    if entity is None:
        return {}
    fields = {field.name: field.text(entity) for field in type_of(entity).edited}
    if isinstance(entity, Resource):
        del fields["sha256"]
        fields["content"] = "" if content is None else _content_text(entity, content)
    return {name: text for name, text in fields.items() if text}


def _content_text(resource: Resource, content: bytes) -> str:
    try:
        if resource.is_text:
            return content.decode()
    except UnicodeDecodeError:
        pass
    return f"({len(content):,} bytes, SHA-256 {resource.sha256})"


def _diff_lines(name: str, old: str | None, new: str | None) -> Iterator[str]:
    if "\n" in (old or "") + (new or ""):
        yield f"@@ {name} @@"
        yield from unified_lines((old or "").splitlines(), (new or "").splitlines())
        return
    if old is not None:
        yield f"-{name}: {old}"
    if new is not None:
        yield f"+{name}: {new}"
