"""Statistics of open and completed tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from dittybag.domain.tasks import TaskGroup
from dittybag.web.charts import Chart, column_chart
from dittybag.web.task_display import PRIORITY_NAMES

#: Days in the chart of completed tasks.
DAYS: Final = 30
#: Maximum number of projects in the chart.
_MAX_BARS: Final = 15
_QUARTER_SECONDS: Final = 900


class TaskBar(Struct, frozen=True):
    """The number of tasks of a priority or project, and how many are done."""

    label: str
    #: Its value in the query string.
    key: str
    total: int
    done: int
    #: In per cent of the available width.
    width: float
    done_width: float


class TaskStatistics(Struct, frozen=True):
    """The values of all task charts."""

    total: int
    done: int
    by_priority: list[TaskBar]
    by_project: list[TaskBar]
    more_projects: int
    #: One column per day.
    days: Chart
    done_recently: int

    @property
    def share(self) -> int:
        """The share of completed tasks, in per cent."""
        return 100 * self.done // self.total if self.total else 0


def statistics(groups: Sequence[TaskGroup], quarters: Mapping[int, int], today: date) -> TaskStatistics:
    """Compute the charts. `quarters`: completed tasks by quarter of an hour since 1970."""
    projects = sorted(
        _count_by(groups, lambda group: group.project or ""), key=lambda count: (-count[1], count[0])
    )
    priorities = sorted(_count_by(groups, lambda group: group.priority), reverse=True)
    days = _count_by_day(quarters, today)
    return TaskStatistics(
        total=sum(group.total for group in groups),
        done=sum(group.completed for group in groups),
        by_priority=_bars(priorities, lambda key: f"{key} · {PRIORITY_NAMES[key]}"),
        by_project=_bars(projects[:_MAX_BARS], lambda key: key or "No project"),
        more_projects=max(len(projects) - _MAX_BARS, 0),
        days=column_chart([(f"{day:%d %b}: {count} done", [count]) for day, count in days]),
        done_recently=sum(count for _, count in days),
    )


def first_day(now: datetime) -> datetime:
    """Return the start of the first day in the chart of completed tasks."""
    midnight = datetime.combine(now.date() - timedelta(DAYS - 1), datetime.min.time())
    return midnight.astimezone()


def _count_by(groups: Iterable[TaskGroup], key: Callable[[TaskGroup], Any]) -> list[tuple[Any, int, int]]:
    counts: dict[Any, tuple[int, int]] = {}
    for group in groups:
        total, done = counts.get(key(group), (0, 0))
        counts[key(group)] = total + group.total, done + group.completed
    return [(name, *count) for name, count in counts.items()]


def _bars(counts: Sequence[tuple[Any, int, int]], label: Callable[[Any], str]) -> list[TaskBar]:
    largest = max((total for _, total, _ in counts), default=0)
    return [
        TaskBar(
            label(key), str(key), total, done, round(100 * total / largest, 2), round(100 * done / largest, 2)
        )
        for key, total, done in counts
    ]


def _count_by_day(quarters: Mapping[int, int], today: date) -> list[tuple[date, int]]:
    counts = {today - timedelta(back): 0 for back in reversed(range(DAYS))}
    for quarter, count in quarters.items():
        day = datetime.fromtimestamp(quarter * _QUARTER_SECONDS).date()  # noqa: DTZ006  # the day here
        if day in counts:
            counts[day] += count
    return list(counts.items())
