"""What is in a project at a glance, and how much it is used."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msgspec import Struct

from dittybag.domain.ports import Store, Transaction
from dittybag.services.caller import Caller, ScopedStore, readable_project

#: In microseconds.
_DAY: Final = 86_400_000_000
#: So many days are shown.
DAYS: Final = 30
#: So many changes are counted at once, at most. What was counted is remembered: the log only grows.
_COUNTED: Final = 100_000
#: For so many projects and users.
_REMEMBERED: Final = 500


class ProjectCounts(Struct, frozen=True):
    """How much there is of everything."""

    prompts: int
    resources: int
    #: The caller's, and yet to be done.
    tasks: int


class DayUsage(Struct, frozen=True):
    """How many changes there were on a day, by whom."""

    #: When it began, in microseconds since 1970.
    at: int
    people: int = 0
    agents: int = 0

    @property
    def total(self) -> int:
        return self.people + self.agents


class DailyUsage(Struct, frozen=True):
    """Changes day by day, in UTC, the oldest day first."""

    days: list[DayUsage]
    #: If there were more changes than can be counted: the day from which on they are counted.
    since: int | None = None


class _Count(Struct, frozen=True):
    """What was counted up to a change."""

    #: Its number and its time.
    last: tuple[int, int]
    #: By day, and whether people did it.
    changes: dict[tuple[int, bool], int]
    #: The time of the last one before those that were counted, if there is one.
    since: int | None


class OverviewService:
    """Counts what is there and what happens."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)
        self._counts: OrderedDict[tuple[int, str | None, str], _Count] = OrderedDict()

    async def count_contents(self, caller: Caller) -> ProjectCounts:
        """How much there is in the caller's project, and of the caller's tasks."""

        async def work(transaction: Transaction) -> ProjectCounts:
            await readable_project(transaction, caller)
            return ProjectCounts(*await transaction.projects.count_contents(caller.project, caller.user))

        return await self._store.read(caller, work, slow=True)

    async def usage(self, caller: Caller, person: str) -> DailyUsage:
        """How often something was changed in the caller's project, and of the caller's tasks.

        `person`: how the log calls whoever sits at this machine.
        """
        key = caller.project, caller.viewer, person

        async def work(transaction: Transaction) -> tuple[_Count | None, int]:
            await readable_project(transaction, caller)
            known = self._counts.get(key)
            return await _counted(transaction, caller, person, known), transaction.now // _DAY

        count, today = await self._store.read(caller, work, slow=True)
        if count is None:
            return DailyUsage([DayUsage(day * _DAY) for day in range(today - DAYS + 1, today + 1)])
        self._remember(key, count, today)
        return _usage(count, today)

    def _remember(self, key: tuple[int, str | None, str], count: _Count, today: int) -> None:
        recent = {what: number for what, number in count.changes.items() if what[0] > today - DAYS}
        self._counts[key] = _Count(count.last, recent, count.since)
        self._counts.move_to_end(key)
        while len(self._counts) > _REMEMBERED:
            self._counts.popitem(last=False)


def is_person(actor: str, person: str) -> bool:
    """Whether somebody did it by hand, as far as the log tells: at a page, or in a shell of this machine."""
    return actor == person or actor.endswith(" via web")


async def _counted(
    transaction: Transaction, caller: Caller, person: str, known: _Count | None
) -> _Count | None:
    """What there is to count, with what is known already."""
    newest = await transaction.changes.newest_seq()
    if known is not None:
        seq, at = known.last
        # After a restore from a backup, the log is another one.
        if newest - seq > _COUNTED or await _time(transaction, seq) != at:
            known = None
    # The first change of all made the workspace itself.
    after = max(newest - _COUNTED, 1) if known is None else known.last[0]
    changes = {} if known is None else dict(known.changes)
    for day, actor, number in await transaction.changes.count_per_day(
        caller.project, after=after, before=newest + 1, user=caller.viewer
    ):
        what = day, is_person(actor, person)
        changes[what] = changes.get(what, 0) + number
    latest = await _time(transaction, newest)
    if latest is None:
        return None
    return _Count((newest, latest), changes, known.since if known else await _since(transaction, after))


async def _since(transaction: Transaction, after: int) -> int | None:
    return await _time(transaction, after) if after > 1 else None


async def _time(transaction: Transaction, seq: int) -> int | None:
    """When a change was made."""
    change = await transaction.changes.get(seq)
    return None if change is None else change.at


def _usage(count: _Count, today: int) -> DailyUsage:
    days = [
        DayUsage(day * _DAY, count.changes.get((day, True), 0), count.changes.get((day, False), 0))
        for day in range(today - DAYS + 1, today + 1)
    ]
    return DailyUsage(days, count.since if count.since is not None and count.since >= days[0].at else None)
