"""How much there is to do and what was done, as charts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from dittybag.domain.tasks import TaskGroup
from dittybag.web.charts import Chart, columns
from dittybag.web.task_display import PRIORITY_NAMES

#: So many days back the chart of what was done goes.
DAYS: Final = 30
#: Not more projects than this are drawn.
_MAX_BARS: Final = 15
_QUARTER_SECONDS: Final = 900


class Bar(Struct, frozen=True):
    """How many tasks there are of something, and how many of them are done."""

    label: str
    #: What an address says about them.
    key: str
    total: int
    done: int
    #: Of the room there is, in per cent.
    width: float
    done_width: float


class Statistics(Struct, frozen=True):
    """All charts."""

    total: int
    done: int
    by_priority: list[Bar]
    by_project: list[Bar]
    more_projects: int
    #: A column for each day.
    days: Chart
    done_lately: int

    @property
    def share(self) -> int:
        """In per cent."""
        return 100 * self.done // self.total if self.total else 0


def statistics(groups: Sequence[TaskGroup], quarters: Mapping[int, int], today: date) -> Statistics:
    """Charts of how many tasks there are; `quarters`: when some of them were done."""
    projects = sorted(
        _counts(groups, lambda group: group.project or ""), key=lambda count: (-count[1], count[0])
    )
    priorities = sorted(_counts(groups, lambda group: group.priority), reverse=True)
    days = _days(quarters, today)
    return Statistics(
        total=sum(group.total for group in groups),
        done=sum(group.completed for group in groups),
        by_priority=_bars(priorities, lambda key: f"{key} · {PRIORITY_NAMES[key]}"),
        by_project=_bars(projects[:_MAX_BARS], lambda key: key or "No project"),
        more_projects=max(len(projects) - _MAX_BARS, 0),
        days=columns([(f"{day:%d %b}: {count} done", [count]) for day, count in days]),
        done_lately=sum(count for _, count in days),
    )


def first_day(here: datetime) -> datetime:
    """When the first day begins that the chart of what was done shows."""
    midnight = datetime.combine(here.date() - timedelta(DAYS - 1), datetime.min.time())
    return midnight.astimezone()


def _counts(groups: Iterable[TaskGroup], key: Callable[[TaskGroup], Any]) -> list[tuple[Any, int, int]]:
    counts: dict[Any, tuple[int, int]] = {}
    for group in groups:
        total, done = counts.get(key(group), (0, 0))
        counts[key(group)] = total + group.total, done + group.completed
    return [(name, *count) for name, count in counts.items()]


def _bars(counts: Sequence[tuple[Any, int, int]], label: Callable[[Any], str]) -> list[Bar]:
    most = max((total for _, total, _ in counts), default=0)
    return [
        Bar(label(key), str(key), total, done, round(100 * total / most, 2), round(100 * done / most, 2))
        for key, total, done in counts
    ]


def _days(quarters: Mapping[int, int], today: date) -> list[tuple[date, int]]:
    counts = {today - timedelta(back): 0 for back in reversed(range(DAYS))}
    for quarter, count in quarters.items():
        day = datetime.fromtimestamp(quarter * _QUARTER_SECONDS).date()  # noqa: DTZ006  # the day here
        if day in counts:
            counts[day] += count
    return list(counts.items())
