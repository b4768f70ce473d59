"""What each actor changed since a change of the log, or since a time."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dittybag.domain.changes import ActorCount
from dittybag.domain.ports import Transaction
from dittybag.domain.queries import ChangeQuery
from dittybag.services.caller import Caller, readable_project

#: Maximum number of recent changes to count.
_MAX_COUNTED: Final = 5000


class ActorActivity(Struct, frozen=True):
    """The changes of a project since a point of the log, by actor."""

    counts: list[ActorCount]
    #: The counted changes are those after this `seq`.
    after: int
    #: The `seq` of the newest change in the log.
    newest: int
    #: Whether older changes were left out because there are too many.
    is_truncated: bool

    @property
    def clients(self) -> list[tuple[str, int]]:
        """The clients that made changes over MCP, and when each was last seen, the latest first."""
        seen: dict[str, int] = {}
        for item in self.counts:
            if item.interface == "mcp":
                seen[item.actor] = max(item.last_at, seen.get(item.actor, 0))
        return sorted(seen.items(), key=lambda client: -client[1])


async def log_range(transaction: Transaction, caller: Caller) -> tuple[int | None, int]:
    """Return the time of the first change of the log, which tells logs apart, and the `seq` of the newest."""
    first = await transaction.changes.get(1)
    return None if first is None else first.at, await transaction.changes.newest_seq()


async def count_by_actor(
    transaction: Transaction, caller: Caller, *, after: int, since: int | None = None
) -> ActorActivity:
    """Count the changes in the caller's project and to the caller's tasks, by actor.

    `after`: only changes after this `seq`. `since`: only changes at this time or later.
    """
    await readable_project(transaction, caller)
    newest = await transaction.changes.newest_seq()
    # The first change created the workspace.
    first = max(newest - _MAX_COUNTED, after, 1)
    query = ChangeQuery(project=caller.project, after=first, since=since, user=caller.viewer)
    counts = await transaction.changes.count_by_actor(query)
    return ActorActivity(counts, first, newest, is_truncated=first > max(after, 1) and since is None)
