"""`dittybag history`: who changed what, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from dittybag.cli import stored_names
from dittybag.cli.change_output import print_changes
from dittybag.cli.output import hint, limit_option
from dittybag.cli.param_types import past_time
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.whole_numbers import POSITIVE
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.changes import Change
from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.projects import AUTOMATIC
from dittybag.domain.queries import ChangeQuery

if TYPE_CHECKING:
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
@in_project
def command(item: str | None, options: WorkspaceOptions, *, limit: int, **filters: Any) -> None:
    """Show who changed what, and when, newest first.

    ITEM is a name, title, URI or id. Deleted items can be named too. With --project, only changes in that
    project, and to tasks.

    \b
    Examples:
      dittybag history
      dittybag history code-review
      dittybag history --actor claude-code --since 2h
    """
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


async def find_project_id(session: WorkspaceSession, name: str | None) -> int | None:
    """Return the id of a project; `None` for all projects."""
    if name == AUTOMATIC:
        return session.caller.project
    return None if name is None else (await session.workspace.projects.find(name)).id


async def project_names(session: WorkspaceSession) -> dict[int, str]:
    """Return the names of all projects by id."""
    return {size.project.id: size.project.name for size in await session.workspace.projects.all()}
