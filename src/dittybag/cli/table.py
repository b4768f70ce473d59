"""Tables that fit the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import click
from msgspec import Struct

from dittybag.cli.output import display_width, echo_long, pad, terminal_safe

#: Minimum widths of columns that are cut, and of columns that are wrapped.
_MIN_CUT: Final = 10
_MIN_WRAPPED: Final = 30
#: An extra column is shown if this much of it has room beside this much of a wrapped one.
_EXTRA: Final = 20
_WRAPPED: Final = 50
_GAP: Final = 2


class Column(Struct, frozen=True):
    """A column of a table, and what becomes of it if the terminal is narrow or wide."""

    name: str
    #: A shorter name, for terminals.
    short: str = ""
    right: bool = False
    #: How it becomes narrower: not at all, cut at the end, or wrapped at words.
    shrink: Literal["", "cut", "wrap"] = ""
    #: Columns with the highest number are left out first on a terminal without room for them; 0 for never.
    rank: int = 0
    #: Shown only on a terminal that has room left.
    extra: bool = False

    def min_width(self, width: int) -> int:
        """Return how narrow the column can be if its widest cell has this width."""
        return min(width, {"": width, "cut": _MIN_CUT, "wrap": _MIN_WRAPPED}[self.shrink])


def print_table(
    header: Sequence[str | Column],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    shrinkable: Sequence[int] = (),
    styles: Callable[[int], Mapping[str, Any]] = lambda row: {},
    cell_styles: Callable[[int, str], Mapping[str, Any]] = lambda row, name: {},
) -> None:
    """Print rows under a header; on a terminal, without columns that are empty or do not fit.

    For columns that are only a name, `right` has the positions of those that are right-aligned, `shrinkable`
    of those that can be cut. `styles` returns the click style of a row, `cell_styles` of a cell in a column.
    """
    columns = [
        item
        if isinstance(item, Column)
        else Column(item, right=position in right, shrink="cut" if position in shrinkable else "")
        for position, item in enumerate(header)
    ]
    is_terminal = sys.stdout.isatty()
    names = [column.short or column.name if is_terminal else column.name for column in columns]
    lines = [[terminal_safe(cell) for cell in row] for row in rows]
    widths = [
        max(display_width(name), *(display_width(line[position]) for line in lines), 0)
        for position, name in enumerate(names)
    ]
    if is_terminal:
        import shutil

        filled = [
            position for position in range(len(columns)) if any(line[position] for line in lines) or not lines
        ]
        shown = _fit(columns, widths, filled, shutil.get_terminal_size().columns)
    else:
        shown = [position for position, column in enumerate(columns) if not column.extra]
    printed = _row_lines(names, columns, widths, shown, {position: {"bold": True} for position in shown})
    for number, line in enumerate(lines):
        marks = {
            position: {**styles(number), **cell_styles(number, columns[position].name)}
            for position in (shown if is_terminal else ())
        }
        printed += _row_lines(line, columns, widths, shown, marks)
    echo_long("\n".join(printed))


def _row_lines(
    cells: Sequence[str],
    columns: Sequence[Column],
    widths: Sequence[int],
    shown: Sequence[int],
    marks: Mapping[int, Mapping[str, Any]],
) -> list[str]:
    """Return the lines of a row, in which wrapped cells continue. `marks`: the styles of cells."""
    parts = {
        position: wrap(cells[position], widths[position])
        if columns[position].shrink == "wrap"
        else [cells[position]]
        for position in shown
    }
    lines = []
    for line in range(max(map(len, parts.values()))):
        text = ""
        for position in shown:
            part = parts[position][line] if line < len(parts[position]) else ""
            padded = pad(part, widths[position], right=columns[position].right)
            mark, bare = marks.get(position, {}), padded.strip()
            if bare and any(mark.values()):
                padded = padded.replace(bare, click.style(bare, **mark), 1)
            text += padded + " " * _GAP
        lines.append(text.rstrip())
    return lines


def _fit(columns: Sequence[Column], widths: list[int], filled: Sequence[int], room: int) -> list[int]:
    """Return which of the filled columns fit into a terminal, and narrow their widths."""
    shown = [position for position in filled if not columns[position].extra]

    def overhang(sizes: Mapping[int, int]) -> int:
        return sum(sizes.values()) + _GAP * (len(sizes) - 1) - room

    least = {position: columns[position].min_width(widths[position]) for position in range(len(columns))}
    while overhang({position: least[position] for position in shown}) > 0:
        last = max(shown, key=lambda position: columns[position].rank)
        if not columns[last].rank:
            break
        shown.remove(last)
    wanted = {
        position: min(width, _WRAPPED) if columns[position].shrink == "wrap" else width
        for position, width in enumerate(widths)
    }
    for position in filled:
        if columns[position].extra:
            wanted[position] = min(widths[position], _EXTRA)
            if overhang({index: wanted[index] for index in (*shown, position)}) <= 0:
                shown.append(position)
    shown.sort()
    for _ in range(max(0, overhang({position: widths[position] for position in shown}))):
        widest = max(shown, key=lambda position: (widths[position] > least[position], widths[position]))
        if widths[widest] <= least[widest]:
            break
        widths[widest] -= 1
    return shown


def wrap(text: str, columns: int) -> list[str]:
    """Break a text into lines of at most this many columns, at blanks where possible."""
    lines, line = [], ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if display_width(joined) <= columns:
            line = joined
            continue
        if line:
            lines.append(line)
        while display_width(word) > columns:
            piece = word
            while display_width(piece) > columns:
                piece = piece[:-1]
            lines.append(piece or word[:1])
            word = word[len(lines[-1]) :]  # noqa: PLW2901  # what is left of it
        line = word
    return [*lines, line]
