"""Geometry of the bar charts that the server renders as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

#: In SVG units; the page scales the chart to the available width.
WIDTH: Final = 600
HEIGHT: Final = 100
#: The share of a column that stays empty.
_GAP: Final = 0.25


class BarSegment(Struct, frozen=True):
    """A segment of a stacked bar, drawn as a rectangle."""

    x: float
    y: float
    width: float
    height: float
    #: The index of the stacked value, from 0.
    part: int


class ChartColumn(Struct, frozen=True):
    """A column with one or several stacked values."""

    label: str
    #: The full width of the column, for the tooltip.
    x: float
    width: float
    marks: list[BarSegment]


class Chart(Struct, frozen=True):
    """A column chart."""

    columns: list[ChartColumn]
    #: The largest total of a column.
    top: int
    width: int = WIDTH
    height: int = HEIGHT


def column_chart(values: Sequence[tuple[str, Sequence[int]]]) -> Chart:
    """Return a chart with one column per label; its values are stacked from the bottom up."""
    top = max((sum(parts) for _, parts in values), default=0)
    width = WIDTH / max(len(values), 1)
    return Chart(
        [
            ChartColumn(
                label, _round(index * width), _round(width), _segments(index * width, width, parts, top)
            )
            for index, (label, parts) in enumerate(values)
        ],
        top,
    )


def _segments(x: float, width: float, parts: Sequence[int], top: int) -> list[BarSegment]:
    marks = []
    base = float(HEIGHT)
    for number, value in enumerate(parts):
        if value > 0:
            # Small values stay visible.
            height = max(HEIGHT * value / top, 1.0)
            base -= height
            left, segment_width = _round(x + width * _GAP / 2), _round(width * (1 - _GAP))
            marks.append(BarSegment(left, _round(base), segment_width, _round(height), number))
    return marks


def _round(length: float) -> float:
    return round(length, 2)
