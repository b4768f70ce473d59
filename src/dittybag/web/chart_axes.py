"""The geometry of charts: axes with round numbers, columns and ticks, in per cent of the plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

#: At most this many intervals between the ticks of an axis.
_MAX_INTERVALS: Final = 4
#: The labels of days are this many columns apart.
_DAYS_APART: Final = 7
#: A value that is not 0 is at least this high.
_MIN_HEIGHT: Final = 1.5
#: How much of the width of a column is its bar.
_BAR_SHARE: Final = 0.72


class Tick(Struct, frozen=True):
    """A label of an axis, and where it is."""

    label: str
    at: float


class DayValues(Struct, frozen=True):
    """The values of a day, from the bottom up."""

    label: str
    tooltip: str
    first: int
    second: int = 0


class BarPart(Struct, frozen=True):
    """A part of the bar of a column."""

    is_second: bool
    y: float
    height: float


class ChartColumn(Struct, frozen=True, kw_only=True):
    """A column of a chart, with two values above each other."""

    tooltip: str
    x: float
    width: float
    bar_x: float
    bar_width: float
    parts: list[BarPart]
    #: Which end of the tooltip is at the middle of the column, so that it stays within the chart.
    anchor: str

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


class ColumnChart(Struct, frozen=True):
    """A chart with a column for each day."""

    columns: list[ChartColumn]
    values: list[Tick]
    days: list[Tick]


def value_ticks(largest: int) -> tuple[int, list[int]]:
    """Return the end of an axis for values from 0 to `largest`, and the values of its ticks."""
    step, factors = 1, 0
    while step * _MAX_INTERVALS < largest:
        factors += 1
        step = (1, 2, 5)[factors % 3] * 10 ** (factors // 3)
    count = max(-(-largest // step), 1)
    return step * count, [step * number for number in range(count + 1)]


def column_chart(days: Sequence[DayValues]) -> ColumnChart:
    """Return a chart of days."""
    top, values = value_ticks(max(day.first + day.second for day in days))
    width = 100 / len(days)
    # From the last day back, so that today has a label.
    labelled = range(len(days) - 1, -1, -_DAYS_APART)
    return ColumnChart(
        [_column(day, position * width, width, top) for position, day in enumerate(days)],
        [Tick(f"{value:,}", round(100 - 100 * value / top, 2)) for value in values],
        [Tick(days[position].label, round((position + 0.5) * width, 2)) for position in reversed(labelled)],
    )


def _column(day: DayValues, x: float, width: float, top: int) -> ChartColumn:
    parts, below = [], 0.0
    for value, is_second in ((day.first, False), (day.second, True)):
        if value:
            height = max(100 * value / top, _MIN_HEIGHT)
            parts.append(BarPart(is_second, round(100 - below - height, 2), round(height, 2)))
            below += height
    return ChartColumn(
        tooltip=day.tooltip,
        x=round(x, 2),
        width=round(width, 2),
        bar_x=round(x + width * (1 - _BAR_SHARE) / 2, 2),
        bar_width=round(width * _BAR_SHARE, 2),
        parts=parts,
        anchor="start" if x < 35 else "end" if x > 65 else "middle",
    )
