"""The charts of open and completed tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from dittybag.domain.tasks import TaskCount, TaskCounts
from dittybag.web.charts import Chart, column_chart
from dittybag.web.task_display import column_title

#: Days in the chart of completed tasks.
DAYS: Final = 30
#: Maximum number of projects in the chart.
_MAX_BARS: Final = 15
_QUARTER_SECONDS: Final = 900


class TaskBar(Struct, frozen=True):
    """The bar of a priority or project, and its completed part."""

    label: str
    count: TaskCount
    #: In per cent of the available width.
    width: float
    done_width: float


class TaskCharts(Struct, frozen=True):
    """The values of all task charts."""

    counts: TaskCounts
    by_priority: list[TaskBar]
    by_project: list[TaskBar]
    more_projects: int
    #: One column per day.
    days: Chart
    done_recently: int


def task_charts(counts: TaskCounts, quarters: Mapping[int, int], today: date) -> TaskCharts:
    """Compute the charts. `quarters`: completed tasks by quarter of an hour since 1970."""
    days = _count_by_day(quarters, today)
    return TaskCharts(
        counts=counts,
        by_priority=_bars(counts.by_priority, lambda key: column_title("priority", key)),
        by_project=_bars(counts.by_project[:_MAX_BARS], lambda key: column_title("project", key or "")),
        more_projects=max(len(counts.by_project) - _MAX_BARS, 0),
        days=column_chart([(f"{day:%d %b}: {count} done", [count]) for day, count in days]),
        done_recently=sum(count for _, count in days),
    )


def first_day(now: datetime) -> datetime:
    """Return the start of the first day in the chart of completed tasks."""
    midnight = datetime.combine(now.date() - timedelta(DAYS - 1), datetime.min.time())
    return midnight.astimezone()


def _bars(counts: Sequence[TaskCount], label: Callable[[Any], str]) -> list[TaskBar]:
    largest = max((count.total for count in counts), default=0)
    return [
        TaskBar(
            label(count.key),
            count,
            round(100 * count.total / largest, 2),
            round(100 * count.completed / largest, 2),
        )
        for count in counts
    ]


def _count_by_day(quarters: Mapping[int, int], today: date) -> list[tuple[date, int]]:
    counts = {today - timedelta(back): 0 for back in reversed(range(DAYS))}
    for quarter, count in quarters.items():
        day = datetime.fromtimestamp(quarter * _QUARTER_SECONDS).date()  # noqa: DTZ006  # the day here
        if day in counts:
            counts[day] += count
    return list(counts.items())
