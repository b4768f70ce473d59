"""Counts of a project's entities, and who changed them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from dittybag.domain.changes import Interface, SeenActor
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.queries import ChangeQuery
from dittybag.services.caller import Caller, ScopedStore, readable_project, reading
from dittybag.services.task_access import visible_view

#: Maximum number of recent changes to look at.
_MAX_COUNTED: Final = 5000


class ProjectCounts(Struct, frozen=True):
    """The number of entities of each kind in a project."""

    prompts: int
    resources: int
    #: The open tasks of the caller.
    tasks: int


async def count_contents(transaction: Transaction, caller: Caller) -> ProjectCounts:
    """Count the entities of the caller's project and the open tasks of the caller."""
    await readable_project(transaction, caller)
    view = await visible_view(transaction, caller)
    return ProjectCounts(*await transaction.projects.count_contents(caller.project, caller.user, view))


async def seen_actors(transaction: Transaction, caller: Caller) -> list[SeenActor]:
    """Return who made recent changes in the caller's project and to the caller's tasks, the latest first."""
    await readable_project(transaction, caller)
    # The first change created the workspace.
    after = max(await transaction.changes.newest_seq() - _MAX_COUNTED, 1)
    return await transaction.changes.seen_actors(
        ChangeQuery(project=caller.project, after=after, user=caller.viewer)
    )


def seen_clients(actors: Iterable[SeenActor]) -> list[tuple[str, int]]:
    """Return the clients that made changes over MCP, and when each was last seen, the latest first."""
    return [(seen.actor, seen.last_at) for seen in actors if seen.interface == "mcp"]


class OverviewService:
    """Counts the entities of projects, and lists who changed them."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)

    count_contents = reading(count_contents, slow=True)
    seen_actors = reading(seen_actors, slow=True)


def is_person(actor: str, interface: Interface | None, person: str) -> bool:
    """Return whether a change was made by a person, in the web UI or in a shell on this machine.

    Clients choose their own names. So the name decides only in a shell, and for changes without an interface.
    """
    if interface is None:
        return actor == person or actor.endswith(" via web")
    return interface == "web" or (interface == "cli" and actor == person)
