"""Charts that the server draws: where each bar of one stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

#: In units of the drawing, which is stretched to the room there is.
WIDTH: Final = 600
HEIGHT: Final = 100
#: As much of a column is left free.
_GAP: Final = 0.25


class Mark(Struct, frozen=True):
    """A part of a bar, drawn as a rectangle."""

    x: float
    y: float
    width: float
    height: float
    #: Which of the parts it is, counted from 0.
    part: int


class Column(Struct, frozen=True):
    """What stands for one value, or for several on top of each other."""

    label: str
    #: All of the column, for whoever points at it.
    x: float
    width: float
    marks: list[Mark]


class Chart(Struct, frozen=True):
    """Columns side by side."""

    columns: list[Column]
    #: What the highest one stands for.
    top: int
    width: int = WIDTH
    height: int = HEIGHT


def columns(values: Sequence[tuple[str, Sequence[int]]]) -> Chart:
    """A chart of columns, each with a label and the values that it is made of, from the bottom up."""
    top = max((sum(parts) for _, parts in values), default=0)
    width = WIDTH / max(len(values), 1)
    return Chart(
        [
            Column(label, _rounded(at * width), _rounded(width), _marks(at * width, width, parts, top))
            for at, (label, parts) in enumerate(values)
        ],
        top,
    )


def _marks(x: float, width: float, parts: Sequence[int], top: int) -> list[Mark]:
    marks = []
    base = float(HEIGHT)
    for number, value in enumerate(parts):
        if value > 0:
            # What is there can be seen, however little it is.
            height = max(HEIGHT * value / top, 1.0)
            base -= height
            left, broad = _rounded(x + width * _GAP / 2), _rounded(width * (1 - _GAP))
            marks.append(Mark(left, _rounded(base), broad, _rounded(height), number))
    return marks


def _rounded(length: float) -> float:
    return round(length, 2)
