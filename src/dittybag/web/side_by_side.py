"""Side-by-side diffs by line and by word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final, Literal

from msgspec import Struct

from dittybag.text_diff import CONTEXT, Run, cut_line, difference_start, differences

_MAX_ROWS: Final = 1000
#: Longer lines are cut.
_MAX_LINE_LENGTH: Final = 1000
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


def side_by_side(old: str, new: str) -> list[DiffRow]:
    """Return the differences with some context; an empty list if the texts are equal."""
    if old == new:
        return []
    # An empty text has no lines.
    before, after = (text.split("\n") if text else [] for text in (old, new))
    return _RowBuilder(before, after).rows(differences(before, after))


class _RowBuilder:
    """Builds the rows of a diff."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        self._old, self._new = old, new
        self._pairs = 0

    def rows(self, runs: list[Run]) -> list[DiffRow]:
        rows: list[DiffRow] = []
        for row in self._all_rows(runs):
            if len(rows) == _MAX_ROWS:
                shown = max((row.new_number or row.old_number or 0 for row in rows[-20:]), default=0)
                left = max(len(self._old), len(self._new)) - shown
                return [*rows, DiffRow("cut", count=max(left, 1))]
            rows.append(row)
        return rows

    def _all_rows(self, runs: list[Run]) -> Iterator[DiffRow]:
        old_at = new_at = 0
        for index, (old, old_end, new, new_end) in enumerate(runs):
            yield from self._equal_rows(old_at, new_at, old - old_at, after=index > 0, before=True)
            yield from self._changed_rows(old, old_end, new, new_end)
            old_at, new_at = old_end, new_end
        yield from self._equal_rows(old_at, new_at, len(self._old) - old_at, after=True, before=False)

    def _equal_rows(self, old: int, new: int, count: int, *, after: bool, before: bool) -> Iterator[DiffRow]:
        """Yield the unchanged lines next to differences, and a count of the lines in between."""
        first = min(CONTEXT, count) if after else 0
        last = min(CONTEXT, count - first) if before else 0
        skipped = count - first - last
        yield from (self._equal_row(old + at, new + at) for at in range(first))
        if skipped == 1:
            yield self._equal_row(old + first, new + first)
        elif skipped:
            yield DiffRow("skipped", count=skipped)
        yield from (self._equal_row(old + at, new + at) for at in range(count - last, count))

    def _equal_row(self, old: int, new: int) -> DiffRow:
        spans = (TextSpan(_shown(self._old[old])),)
        return DiffRow("same", old + 1, new + 1, spans, spans)

    def _changed_rows(self, old: int, old_end: int, new: int, new_end: int) -> Iterator[DiffRow]:
        for old_index, new_index in zip_longest(range(old, old_end), range(new, new_end)):
            if old_index is None:
                yield DiffRow("added", None, new_index + 1, (), (TextSpan(_shown(self._new[new_index])),))
            elif new_index is None:
                yield DiffRow("removed", old_index + 1, None, (TextSpan(_shown(self._old[old_index])),), ())
            else:
                spans = self._compare_words(self._old[old_index], self._new[new_index])
                yield DiffRow("changed", old_index + 1, new_index + 1, *spans)

    def _compare_words(self, old: str, new: str) -> tuple[tuple[TextSpan, ...], tuple[TextSpan, ...]]:
        start = difference_start(old, new) if max(len(old), len(new)) > _MAX_LINE_LENGTH else 0
        old, new = _shown(old, start), _shown(new, start)
        self._pairs += 1
        if self._pairs > _MAX_WORD_PAIRS:
            return (TextSpan(old),), (TextSpan(new),)
        old_words, new_words = _WORDS.findall(old), _WORDS.findall(new)
        runs = differences(old_words, new_words, _MAX_WORD_EDITS, _MAX_LINE_LENGTH)
        if len(runs) == 1 and runs[0] == (0, len(old_words), 0, len(new_words)):
            # Nothing matches, so there is no point in highlighting everything.
            return (TextSpan(old),), (TextSpan(new),)
        return (
            tuple(highlight_runs(old_words, [(begin, end) for begin, end, _, _ in runs])),
            tuple(highlight_runs(new_words, [(begin, end) for _, _, begin, end in runs])),
        )


def _shown(line: str, start: int = 0) -> str:
    """Return the visible part of a line."""
    return cut_line(line, start, _MAX_LINE_LENGTH).replace("\r", "\u240d")


def highlight_runs(words: Sequence[str], runs: Iterable[tuple[int, int]]) -> Iterator[TextSpan]:
    """Yield spans of the words, or of the characters of a text, with some ranges highlighted."""
    at = 0
    for begin, end in runs:
        if at < begin:
            yield TextSpan("".join(words[at:begin]))
        if begin < end:
            yield TextSpan("".join(words[begin:end]), is_highlighted=True)
        at = end
    if at < len(words):
        yield TextSpan("".join(words[at:]))
