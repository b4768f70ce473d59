"""`dittybag history`: who changed what, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from msgspec.structs import replace

from dittybag.cli import stored_names
from dittybag.cli.change_output import change_data, print_changes
from dittybag.cli.error_output import wants_json
from dittybag.cli.output import (
    clip_line,
    format_time,
    hint,
    limit_option,
    print_diff,
    print_json,
)
from dittybag.cli.param_types import past_time
from dittybag.cli.read_input import usage_error
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.whole_numbers import POSITIVE
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.changes import Change
from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.projects import AUTOMATIC
from dittybag.domain.queries import ChangeQuery

if TYPE_CHECKING:
    from dittybag.services.history_service import Comparison
    from dittybag.services.workspace import WorkspaceSession


@click.command("history", StrictCommand)
@click.argument("item", required=False, shell_complete=stored_names.items)
@click.option("--kind", type=click.Choice(tuple(ENTITY_TYPES)), help="Only changes to this kind of item.")
@click.option("--actor", metavar="NAME", help="Only changes by this user or client.")
@click.option(
    "--since", type=past_time, metavar="WHEN", help="Only changes since then: 2h, yesterday, 2026-11-15."
)
@click.option("--before", type=POSITIVE, metavar="CHANGE", help="Only changes before this one.")
@limit_option(20, 10_000)
@click.option("--diff", "is_diff", is_flag=True, help="Show what the change with the number ITEM modified.")
@in_project
def command(
    item: str | None, options: WorkspaceOptions, *, limit: int, is_diff: bool, **filters: Any
) -> None:
    """Show who changed what, and when, newest first.

    ITEM is a name, title, URI or id. Deleted items can be named too. With --project, only changes in that
    project, and to tasks.

    With --diff, ITEM is the number of a change, and the differences that it made are shown.

    \b
    Examples:
      dittybag history
      dittybag history code-review
      dittybag history --actor claude-code --since 2h
      dittybag history 42 --diff
    """
    if is_diff:
        has_limit = click.get_current_context().get_parameter_source("limit") is not ParameterSource.DEFAULT
        if item is None or options.project is not None or has_limit or any(filters.values()):
            usage_error("--diff takes the number of a change, and no other option")
        _show_diff(options, POSITIVE.convert(item, None, None))
        return
    query = ChangeQuery(name=item, limit=limit, **filters)
    changes, projects = options.run(lambda session: _page(session, query, options.project))
    print_changes(changes, projects)
    if len(changes) == limit:
        hint(f"for older changes, use --before {changes[-1].seq}")


async def _page(
    session: WorkspaceSession, query: ChangeQuery, project: str | None
) -> tuple[list[Change], dict[int, str]]:
    history = session.workspace.history
    query = replace(query, project=await find_project_id(session, project))
    found = await history.page(session.caller, query)
    if not found and query.name is not None:
        found = await history.page(session.caller, replace(query, name=None, entity=query.name))
    return found, await project_names(session)


def _show_diff(options: WorkspaceOptions, seq: int) -> None:
    """Print what a change modified."""
    from dittybag.services.change_diffs import changed_texts, diff_lines

    async def read(session: WorkspaceSession) -> tuple[Comparison, dict[int, str]]:
        return await session.workspace.history.compare(session.caller, seq), await project_names(session)

    found, projects = options.run(read)
    change, texts = found.first, changed_texts(found)
    if wants_json():
        fields = {name: {"before": old, "after": new} for name, (old, new) in texts.items()}
        print_json({"change": change_data(change, projects), "fields": fields})
        return
    click.secho(f"{change.kind} {clip_line(change.label)}", bold=True)
    click.secho(f"{change.verb} by {clip_line(change.actor)}, {format_time(change.at)}", dim=True)
    print_diff(diff_lines(texts))
    if not texts:
        click.echo("No visible differences", err=True)


async def find_project_id(session: WorkspaceSession, name: str | None) -> int | None:
    """Return the id of a project; `None` for all projects."""
    if name == AUTOMATIC:
        return session.caller.project
    return None if name is None else (await session.workspace.projects.find(name)).id


async def project_names(session: WorkspaceSession) -> dict[int, str]:
    """Return the names of all projects by id."""
    return {size.project.id: size.project.name for size in await session.workspace.projects.all()}
