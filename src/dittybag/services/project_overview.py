"""Counts of a project's entities, and of its changes by day and by actor."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msgspec import Struct

from dittybag.domain.changes import Interface
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.queries import ChangeQuery
from dittybag.services.actor_activity import count_by_actor, log_range
from dittybag.services.caller import Caller, ScopedStore, readable_project, reading
from dittybag.services.task_access import visible_view

#: In microseconds.
_DAY: Final = 86_400_000_000
#: Number of days in the usage chart.
DAYS: Final = 30
#: Maximum number of changes to count in one request. Counts are cached because the log is append-only.
_MAX_CHANGES: Final = 40_000
#: Maximum number of cached counts, one for each project and user.
_MAX_CACHED: Final = 500


class ProjectCounts(Struct, frozen=True):
    """The number of entities of each kind in a project."""

    prompts: int
    resources: int
    #: The open tasks of the caller.
    tasks: int


class DayUsage(Struct, frozen=True):
    """The number of changes on a day, by people and by agents."""

    #: Start of the day, in microseconds since 1970.
    at: int
    people: int = 0
    agents: int = 0

    @property
    def total(self) -> int:
        return self.people + self.agents


class DailyUsage(Struct, frozen=True):
    """Changes per day in UTC, oldest day first."""

    days: list[DayUsage]
    #: If there are too many changes to count: the time from which they are counted.
    since: int | None = None


class _CachedCount(Struct, frozen=True):
    """The cached counts up to a change."""

    #: The `seq` and the time of that change.
    last: tuple[int, int]
    #: The number of changes by day and by whether a person made them.
    changes: dict[tuple[int, bool], int]
    #: The time of the last change before the counted ones, if any.
    since: int | None


async def count_contents(transaction: Transaction, caller: Caller) -> ProjectCounts:
    """Count the entities of the caller's project and the open tasks of the caller."""
    await readable_project(transaction, caller)
    view = await visible_view(transaction, caller)
    return ProjectCounts(*await transaction.projects.count_contents(caller.project, caller.user, view))


class OverviewService:
    """Counts the entities of projects and their changes per day."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)
        self._counts: OrderedDict[tuple[int, str | None, str], _CachedCount] = OrderedDict()

    count_contents = reading(count_contents, slow=True)
    by_actor = reading(count_by_actor, slow=True)
    log_range = reading(log_range)

    async def usage(self, caller: Caller, person: str) -> DailyUsage:
        """Count the changes per day in the caller's project and to the caller's tasks.

        `person`: the actor name of the person at this machine.
        """
        key = caller.project, caller.viewer, person
        count, today = await self._store.read(
            caller, _count_changes, person, self._counts.get(key), slow=True
        )
        if count is None:
            return DailyUsage([DayUsage(day * _DAY) for day in range(today - DAYS + 1, today + 1)])
        self._cache(key, count, today)
        return _build_usage(count, today)

    def _cache(self, key: tuple[int, str | None, str], count: _CachedCount, today: int) -> None:
        recent = {what: number for what, number in count.changes.items() if what[0] > today - DAYS}
        self._counts[key] = _CachedCount(count.last, recent, count.since)
        self._counts.move_to_end(key)
        while len(self._counts) > _MAX_CACHED:
            self._counts.popitem(last=False)


def is_person(actor: str, interface: Interface | None, person: str) -> bool:
    """Return whether a change was made by a person, in the web UI or in a shell on this machine.

    Clients choose their own names. So the name decides only in a shell, and for changes without an interface.
    """
    if interface is None:
        return actor == person or actor.endswith(" via web")
    return interface == "web" or (interface == "cli" and actor == person)


async def _count_changes(
    transaction: Transaction, caller: Caller, person: str, known: _CachedCount | None
) -> tuple[_CachedCount | None, int]:
    """Count the changes since the cached count `known`.

    Returns the count, `None` if there are no changes, and the day.
    """
    await readable_project(transaction, caller)
    today = transaction.now // _DAY
    newest = await transaction.changes.newest_seq()
    if known is not None:
        seq, at = known.last
        # A restore from a backup replaces the log.
        if newest - seq > _MAX_CHANGES or await _change_time(transaction, seq) != at:
            known = None
    # The first change created the workspace.
    after = max(newest - _MAX_CHANGES, 1) if known is None else known.last[0]
    changes = {} if known is None else dict(known.changes)
    query = ChangeQuery(project=caller.project, after=after, before=newest + 1, user=caller.viewer)
    for day, actor, interface, number in await transaction.changes.count_per_day(query):
        what = day, is_person(actor, interface, person)
        changes[what] = changes.get(what, 0) + number
    latest = await _change_time(transaction, newest)
    if latest is None:
        return None, today
    since = known.since if known else await _counted_since(transaction, after)
    return _CachedCount((newest, latest), changes, since), today


async def _counted_since(transaction: Transaction, after: int) -> int | None:
    return await _change_time(transaction, after) if after > 1 else None


async def _change_time(transaction: Transaction, seq: int) -> int | None:
    """Return the time of a change, or `None` if it does not exist."""
    change = await transaction.changes.get(seq)
    return None if change is None else change.at


def _build_usage(count: _CachedCount, today: int) -> DailyUsage:
    days = [
        DayUsage(day * _DAY, count.changes.get((day, True), 0), count.changes.get((day, False), 0))
        for day in range(today - DAYS + 1, today + 1)
    ]
    return DailyUsage(days, count.since if count.since is not None and count.since >= days[0].at else None)
