"""Two texts side by side: which lines differ, and in them which words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, Literal, TypeAlias

from msgspec import Struct

#: So many equal lines are shown around what differs.
_CONTEXT: Final = 3
#: Texts that differ in more lines than that are shown as if they had nothing in common.
_MOST_EDITS: Final = 400
#: So many lines are compared, beside equal ones at both ends.
_MOST_LINES: Final = 20_000
_MOST_ROWS: Final = 1000
#: As much of a line as is shown.
_LINE_LENGTH: Final = 1000
#: So much of a long line comes before what differs.
_LEAD: Final = 60
#: Words are compared in so many pairs of lines, if they differ in no more words than that.
_MOST_WORD_PAIRS: Final = 300
_MOST_WORD_EDITS: Final = 40

_WORDS: Final = re.compile(r"\w+|\s+|[^\w\s]")


class Piece(Struct, frozen=True):
    """Some characters of a line."""

    text: str
    #: Whether the line on the other side has something else here.
    is_marked: bool = False


class DiffRow(Struct, frozen=True):
    """A line of the old text, and the line of the new one that stands beside it."""

    #: `skipped` stands for equal lines, `cut` for all that comes after the last row.
    kind: Literal["same", "changed", "gone", "new", "skipped", "cut"]
    old_number: int | None = None
    new_number: int | None = None
    old: tuple[Piece, ...] = ()
    new: tuple[Piece, ...] = ()
    #: How many lines are not shown.
    count: int = 0


#: From which line to which, in the old text and in the new one.
_Run: TypeAlias = tuple[int, int, int, int]


def side_by_side(old: str, new: str) -> list[DiffRow]:
    """What differs, with a few lines around it; nothing if the texts are equal."""
    if old == new:
        return []
    # An empty text has no line, not an empty one.
    before, after = (text.split("\n") if text else [] for text in (old, new))
    return _Writer(before, after).rows(_differences(before, after, _MOST_EDITS, _MOST_LINES))


def _differences(old: Sequence[str], new: Sequence[str], most_edits: int, most: int) -> list[_Run]:
    """Where the sequences differ: from which to which, in the old one and in the new one."""
    begin, least = 0, min(len(old), len(new))
    while begin < least and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < least - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    middle = old[begin : len(old) - end], new[begin : len(new) - end]
    is_much = max(map(len, middle)) > most
    steps = None if is_much else _steps(*middle, most_edits)
    if steps is None:
        return [(begin, len(old) - end, begin, len(new) - end)]
    return [(a + begin, b + begin, c + begin, d + begin) for a, b, c, d in steps]


def _steps(old: Sequence[str], new: Sequence[str], most: int) -> list[_Run] | None:
    """The fewest edits that make `new` of `old`; nothing if they are more than `most`.

    This is the greedy algorithm of Eugene W. Myers, "An O(ND) Difference Algorithm and Its Variations": for
    each number of edits, how far one can come on each diagonal.
    """
    reached = {1: 0}
    trace = []
    for edits in range(min(most, len(old) + len(new)) + 1):
        trace.append(reached.copy())
        for diagonal in range(-edits, edits + 1, 2):
            x, _ = _entered(reached, diagonal, edits)
            y = x - diagonal
            while x < len(old) and y < len(new) and old[x] == new[y]:
                x, y = x + 1, y + 1
            reached[diagonal] = x
            if x >= len(old) and y >= len(new):
                return _walked_back(trace, len(old), len(new))
    return None


def _entered(reached: dict[int, int], diagonal: int, edits: int) -> tuple[int, bool]:
    """How far one comes on a diagonal by the last edit alone, and whether that adds something."""
    adds = diagonal == -edits or (diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1])
    return (reached[diagonal + 1] if adds else reached[diagonal - 1] + 1), adds


def _walked_back(trace: list[dict[int, int]], x: int, y: int) -> list[_Run]:
    """The edits that lead to the end, those beside each other taken together."""
    runs: list[_Run] = []
    for edits in range(len(trace) - 1, 0, -1):
        diagonal = x - y
        after, adds = _entered(trace[edits], diagonal, edits)
        end = after, after - diagonal
        x, y = (end[0], end[1] - 1) if adds else (end[0] - 1, end[1])
        if runs and (runs[-1][0], runs[-1][2]) == end:
            _, old_end, _, new_end = runs.pop()
            end = old_end, new_end
        runs.append((x, end[0], y, end[1]))
    return runs[::-1]


class _Writer:
    """Makes rows of lines."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        self._old, self._new = old, new
        self._pairs = 0

    def rows(self, runs: list[_Run]) -> list[DiffRow]:
        rows: list[DiffRow] = []
        for row in self._all(runs):
            if len(rows) == _MOST_ROWS:
                shown = max((row.new_number or row.old_number or 0 for row in rows[-20:]), default=0)
                left = max(len(self._old), len(self._new)) - shown
                return [*rows, DiffRow("cut", count=max(left, 1))]
            rows.append(row)
        return rows

    def _all(self, runs: list[_Run]) -> Iterator[DiffRow]:
        old_at = new_at = 0
        for index, (old, old_end, new, new_end) in enumerate(runs):
            yield from self._equal(old_at, new_at, old - old_at, after=index > 0, before=True)
            yield from self._different(old, old_end, new, new_end)
            old_at, new_at = old_end, new_end
        yield from self._equal(old_at, new_at, len(self._old) - old_at, after=True, before=False)

    def _equal(self, old: int, new: int, count: int, *, after: bool, before: bool) -> Iterator[DiffRow]:
        """Equal lines: those next to what differs, and how many there are in between."""
        first = min(_CONTEXT, count) if after else 0
        last = min(_CONTEXT, count - first) if before else 0
        skipped = count - first - last
        yield from (self._same(old + at, new + at) for at in range(first))
        if skipped == 1:
            yield self._same(old + first, new + first)
        elif skipped:
            yield DiffRow("skipped", count=skipped)
        yield from (self._same(old + at, new + at) for at in range(count - last, count))

    def _same(self, old: int, new: int) -> DiffRow:
        pieces = (Piece(_shown(self._old[old], 0)),)
        return DiffRow("same", old + 1, new + 1, pieces, pieces)

    def _different(self, old: int, old_end: int, new: int, new_end: int) -> Iterator[DiffRow]:
        for was, becomes in zip_longest(range(old, old_end), range(new, new_end)):
            if was is None:
                yield DiffRow("new", None, becomes + 1, (), (Piece(_shown(self._new[becomes], 0)),))
            elif becomes is None:
                yield DiffRow("gone", was + 1, None, (Piece(_shown(self._old[was], 0)),), ())
            else:
                pieces = self._compared(self._old[was], self._new[becomes])
                yield DiffRow("changed", was + 1, becomes + 1, *pieces)

    def _compared(self, old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
        start = _start(old, new) if max(len(old), len(new)) > _LINE_LENGTH else 0
        old, new = _shown(old, start), _shown(new, start)
        self._pairs += 1
        if self._pairs > _MOST_WORD_PAIRS:
            return (Piece(old),), (Piece(new),)
        was, becomes = _WORDS.findall(old), _WORDS.findall(new)
        runs = _differences(was, becomes, _MOST_WORD_EDITS, _LINE_LENGTH)
        if len(runs) == 1 and runs[0] == (0, len(was), 0, len(becomes)):
            # Nothing is alike: marking all of it says nothing.
            return (Piece(old),), (Piece(new),)
        return (
            tuple(_marked(was, [(begin, end) for begin, end, _, _ in runs])),
            tuple(_marked(becomes, [(begin, end) for _, _, begin, end in runs])),
        )


def _start(old: str, new: str) -> int:
    """From where on long lines are shown: shortly before they differ."""
    least = min(len(old), len(new))
    at = next((at for at in range(least) if old[at] != new[at]), least)
    return max(0, at - _LEAD)


def _shown(line: str, start: int) -> str:
    """As much of a line as is shown."""
    shown = line[start : start + _LINE_LENGTH].replace("\r", "\u240d")
    return f"{'…' if start else ''}{shown}{'…' if start + _LINE_LENGTH < len(line) else ''}"


def _marked(words: list[str], runs: list[tuple[int, int]]) -> Iterator[Piece]:
    at = 0
    for begin, end in runs:
        if at < begin:
            yield Piece("".join(words[at:begin]))
        if begin < end:
            yield Piece("".join(words[begin:end]), is_marked=True)
        at = end
    if at < len(words):
        yield Piece("".join(words[at:]))
