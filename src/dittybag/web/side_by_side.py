"""Side-by-side diffs by line and by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, Literal, TypeAlias

from msgspec import Struct

#: Unchanged lines shown around each difference.
_CONTEXT: Final = 3
#: Texts with more edits are shown as entirely different.
_MAX_EDITS: Final = 400
#: Maximum number of lines to compare, after equal lines at both ends are removed.
_MAX_LINES: Final = 20_000
_MAX_ROWS: Final = 1000
#: Longer lines are cut.
_MAX_LINE_LENGTH: Final = 1000
#: Characters of a long line shown before its first difference.
_LEAD_LENGTH: Final = 60
#: Limits of the word diff: pairs of lines per text, and edits per pair.
_MAX_WORD_PAIRS: Final = 300
_MAX_WORD_EDITS: Final = 40

_WORDS: Final = re.compile(r"\w+|\s+|[^\w\s]")


class TextSpan(Struct, frozen=True):
    """A part of a line."""

    text: str
    #: Whether this part differs from the line on the other side.
    is_highlighted: bool = False


class DiffRow(Struct, frozen=True):
    """A line of the old text and the line of the new text beside it."""

    #: `skipped` replaces unchanged lines, `cut` replaces everything after the maximum number of rows.
    kind: Literal["same", "changed", "removed", "added", "skipped", "cut"]
    old_number: int | None = None
    new_number: int | None = None
    old: tuple[TextSpan, ...] = ()
    new: tuple[TextSpan, ...] = ()
    #: The number of lines that are not shown.
    count: int = 0


#: Start and end in the old sequence, then start and end in the new one.
_Run: TypeAlias = tuple[int, int, int, int]


def side_by_side(old: str, new: str) -> list[DiffRow]:
    """Return the differences with some context; an empty list if the texts are equal."""
    if old == new:
        return []
    # An empty text has no lines.
    before, after = (text.split("\n") if text else [] for text in (old, new))
    return _RowBuilder(before, after).rows(_differences(before, after, _MAX_EDITS, _MAX_LINES))


def _differences(old: Sequence[str], new: Sequence[str], max_edits: int, max_length: int) -> list[_Run]:
    """Return the ranges in which the sequences differ."""
    begin, shortest = 0, min(len(old), len(new))
    while begin < shortest and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < shortest - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    middle = old[begin : len(old) - end], new[begin : len(new) - end]
    is_too_long = max(map(len, middle)) > max_length
    edits_found = None if is_too_long else _shortest_edits(*middle, max_edits)
    if edits_found is None:
        return [(begin, len(old) - end, begin, len(new) - end)]
    return [(a + begin, b + begin, c + begin, d + begin) for a, b, c, d in edits_found]


def _shortest_edits(old: Sequence[str], new: Sequence[str], max_edits: int) -> list[_Run] | None:
    """Return the shortest edit script from `old` to `new`, or None if it has more than `max_edits` edits.

    This is the greedy algorithm of Eugene W. Myers, "An O(ND) Difference Algorithm and Its Variations": for
    each number of edits, it computes the furthest point on each diagonal.
    """
    reached = {1: 0}
    trace = []
    for edits in range(min(max_edits, len(old) + len(new)) + 1):
        trace.append(reached.copy())
        for diagonal in range(-edits, edits + 1, 2):
            x, _ = _start_on_diagonal(reached, diagonal, edits)
            y = x - diagonal
            while x < len(old) and y < len(new) and old[x] == new[y]:
                x, y = x + 1, y + 1
            reached[diagonal] = x
            if x >= len(old) and y >= len(new):
                return _backtrack(trace, len(old), len(new))
    return None


def _start_on_diagonal(reached: dict[int, int], diagonal: int, edits: int) -> tuple[int, bool]:
    """Return the x coordinate after the last edit on a diagonal, and whether that edit is an insertion."""
    is_insertion = diagonal == -edits or (diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1])
    return (reached[diagonal + 1] if is_insertion else reached[diagonal - 1] + 1), is_insertion


def _backtrack(trace: list[dict[int, int]], x: int, y: int) -> list[_Run]:
    """Return the edits that lead to the end, with adjacent edits merged."""
    runs: list[_Run] = []
    for edits in range(len(trace) - 1, 0, -1):
        diagonal = x - y
        after, is_insertion = _start_on_diagonal(trace[edits], diagonal, edits)
        end = after, after - diagonal
        x, y = (end[0], end[1] - 1) if is_insertion else (end[0] - 1, end[1])
        if runs and (runs[-1][0], runs[-1][2]) == end:
            _, old_end, _, new_end = runs.pop()
            end = old_end, new_end
        runs.append((x, end[0], y, end[1]))
    return runs[::-1]


class _RowBuilder:
    """Builds the rows of a diff."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        self._old, self._new = old, new
        self._pairs = 0

    def rows(self, runs: list[_Run]) -> list[DiffRow]:
        rows: list[DiffRow] = []
        for row in self._all_rows(runs):
            if len(rows) == _MAX_ROWS:
                shown = max((row.new_number or row.old_number or 0 for row in rows[-20:]), default=0)
                left = max(len(self._old), len(self._new)) - shown
                return [*rows, DiffRow("cut", count=max(left, 1))]
            rows.append(row)
        return rows

    def _all_rows(self, runs: list[_Run]) -> Iterator[DiffRow]:
        old_at = new_at = 0
        for index, (old, old_end, new, new_end) in enumerate(runs):
            yield from self._equal_rows(old_at, new_at, old - old_at, after=index > 0, before=True)
            yield from self._changed_rows(old, old_end, new, new_end)
            old_at, new_at = old_end, new_end
        yield from self._equal_rows(old_at, new_at, len(self._old) - old_at, after=True, before=False)

    def _equal_rows(self, old: int, new: int, count: int, *, after: bool, before: bool) -> Iterator[DiffRow]:
        """Yield the unchanged lines next to differences, and a count of the lines in between."""
        first = min(_CONTEXT, count) if after else 0
        last = min(_CONTEXT, count - first) if before else 0
        skipped = count - first - last
        yield from (self._equal_row(old + at, new + at) for at in range(first))
        if skipped == 1:
            yield self._equal_row(old + first, new + first)
        elif skipped:
            yield DiffRow("skipped", count=skipped)
        yield from (self._equal_row(old + at, new + at) for at in range(count - last, count))

    def _equal_row(self, old: int, new: int) -> DiffRow:
        spans = (TextSpan(_clip_line(self._old[old], 0)),)
        return DiffRow("same", old + 1, new + 1, spans, spans)

    def _changed_rows(self, old: int, old_end: int, new: int, new_end: int) -> Iterator[DiffRow]:
        for old_index, new_index in zip_longest(range(old, old_end), range(new, new_end)):
            if old_index is None:
                yield DiffRow(
                    "added", None, new_index + 1, (), (TextSpan(_clip_line(self._new[new_index], 0)),)
                )
            elif new_index is None:
                yield DiffRow(
                    "removed", old_index + 1, None, (TextSpan(_clip_line(self._old[old_index], 0)),), ()
                )
            else:
                spans = self._compare_words(self._old[old_index], self._new[new_index])
                yield DiffRow("changed", old_index + 1, new_index + 1, *spans)

    def _compare_words(self, old: str, new: str) -> tuple[tuple[TextSpan, ...], tuple[TextSpan, ...]]:
        start = _difference_start(old, new) if max(len(old), len(new)) > _MAX_LINE_LENGTH else 0
        old, new = _clip_line(old, start), _clip_line(new, start)
        self._pairs += 1
        if self._pairs > _MAX_WORD_PAIRS:
            return (TextSpan(old),), (TextSpan(new),)
        old_words, new_words = _WORDS.findall(old), _WORDS.findall(new)
        runs = _differences(old_words, new_words, _MAX_WORD_EDITS, _MAX_LINE_LENGTH)
        if len(runs) == 1 and runs[0] == (0, len(old_words), 0, len(new_words)):
            # Nothing matches, so there is no point in highlighting everything.
            return (TextSpan(old),), (TextSpan(new),)
        return (
            tuple(_highlight_runs(old_words, [(begin, end) for begin, end, _, _ in runs])),
            tuple(_highlight_runs(new_words, [(begin, end) for _, _, begin, end in runs])),
        )


def _difference_start(old: str, new: str) -> int:
    """Return the index shortly before the first difference of two lines."""
    shortest = min(len(old), len(new))
    at = next((at for at in range(shortest) if old[at] != new[at]), shortest)
    return max(0, at - _LEAD_LENGTH)


def _clip_line(line: str, start: int) -> str:
    """Return the visible part of a line."""
    shown = line[start : start + _MAX_LINE_LENGTH].replace("\r", "\u240d")
    return f"{'…' if start else ''}{shown}{'…' if start + _MAX_LINE_LENGTH < len(line) else ''}"


def _highlight_runs(words: list[str], runs: list[tuple[int, int]]) -> Iterator[TextSpan]:
    at = 0
    for begin, end in runs:
        if at < begin:
            yield TextSpan("".join(words[at:begin]))
        if begin < end:
            yield TextSpan("".join(words[begin:end]), is_highlighted=True)
        at = end
    if at < len(words):
        yield TextSpan("".join(words[at:]))
