"""Counts of a project's entities, and of its changes by actor."""

from __future__ import annotations

from msgspec import Struct

from dittybag.domain.changes import Interface
from dittybag.domain.ports import Store, Transaction
from dittybag.services.actor_activity import count_by_actor, log_range
from dittybag.services.caller import Caller, ScopedStore, readable_project, reading
from dittybag.services.task_access import visible_view


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


class OverviewService:
    """Counts the entities of projects and their changes."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)

    count_contents = reading(count_contents, slow=True)
    by_actor = reading(count_by_actor, slow=True)
    log_range = reading(log_range)


def is_person(actor: str, interface: Interface | None, person: str) -> bool:
    """Return whether a change was made by a person, in the web UI or in a shell on this machine.

    Clients choose their own names. So the name decides only in a shell, and for changes without an interface.
    """
    if interface is None:
        return actor == person or actor.endswith(" via web")
    return interface == "web" or (interface == "cli" and actor == person)
