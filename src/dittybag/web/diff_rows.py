"""Unified diffs of texts as rows of a page."""

from __future__ import annotations

from itertools import islice
from typing import Final, Literal

from msgspec import Struct

from dittybag.text_diff import cut_line, difference_start, unified_lines

_MAX_ROWS: Final = 1000
#: Longer lines are cut.
_MAX_LINE_LENGTH: Final = 1000
_KINDS: Final[dict[str, Literal["same", "removed", "added", "hunk"]]] = {
    " ": "same",
    "-": "removed",
    "+": "added",
    "@": "hunk",
}


class DiffRow(Struct, frozen=True):
    """A line of a diff."""

    #: `hunk` says which lines follow, `cut` that the rest is not shown.
    kind: Literal["same", "removed", "added", "hunk", "cut"]
    text: str = ""


def diff_rows(old: str, new: str) -> list[DiffRow]:
    """Return the differences with some context; an empty list if the texts are equal."""
    # An empty text has no lines.
    before, after = (text.split("\n") if text else [] for text in (old, new))
    changed = next((pair for pair in zip(before, after, strict=False) if pair[0] != pair[1]), ("", ""))
    start = difference_start(*changed) if max(map(len, changed)) > _MAX_LINE_LENGTH else 0

    def show(line: str) -> str:
        cut = cut_line(line, start, _MAX_LINE_LENGTH) if len(line) > _MAX_LINE_LENGTH else line
        return cut.replace("\r", "\u240d")

    lines = unified_lines(before, after, show)
    rows = [
        DiffRow(_KINDS[line[0]], line if line[0] == "@" else line[1:]) for line in islice(lines, _MAX_ROWS)
    ]
    return [*rows, DiffRow("cut")] if next(lines, None) is not None else rows
