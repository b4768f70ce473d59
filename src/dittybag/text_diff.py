"""The differences of two texts, and unified diffs. Imports nothing else of Dittybag."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

#: Sequences with more edits are treated as entirely different.
MAX_EDITS: Final = 400
#: Maximum number of items to compare, after equal items at both ends are removed.
MAX_ITEMS: Final = 20_000

#: Unchanged lines shown around each difference.
CONTEXT: Final = 3
#: A file may be a single line of megabytes: longer lines are cut to the part around the change.
_MAX_LINE_LENGTH: Final = 400
#: Characters of a long line shown before its first difference.
_LEAD_LENGTH: Final = 60


class Run(NamedTuple):
    """A range of the old sequence that is replaced by a range of the new one. Either may be empty."""

    old: int
    old_end: int
    new: int
    new_end: int


def differences(old: Sequence[str], new: Sequence[str]) -> list[Run]:
    """Return the ranges in which two sequences differ, in order."""
    begin, shortest = 0, min(len(old), len(new))
    while begin < shortest and old[begin] == new[begin]:
        begin += 1
    if begin == len(old) == len(new):
        return []
    end = 0
    while end < shortest - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    middle = old[begin : len(old) - end], new[begin : len(new) - end]
    edits_found = None if max(map(len, middle)) > MAX_ITEMS else _shortest_edits(*middle)
    if edits_found is None:
        return [Run(begin, len(old) - end, begin, len(new) - end)]
    return [Run(*(at + begin for at in run)) for run in edits_found]


def _shortest_edits(old: Sequence[str], new: Sequence[str]) -> list[Run] | None:
    """Return the shortest edit script from `old` to `new`, or None if it has more than `MAX_EDITS` edits.

    This is the greedy algorithm of Eugene W. Myers, "An O(ND) Difference Algorithm and Its Variations": for
    each number of edits, it computes the furthest point on each diagonal.
    """
    reached = {1: 0}
    trace = []
    for edits in range(min(MAX_EDITS, len(old) + len(new)) + 1):
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


def _backtrack(trace: list[dict[int, int]], x: int, y: int) -> list[Run]:
    """Return the edits that lead to the end, with adjacent edits merged."""
    runs: list[Run] = []
    for edits in range(len(trace) - 1, 0, -1):
        diagonal = x - y
        after, is_insertion = _start_on_diagonal(trace[edits], diagonal, edits)
        end = after, after - diagonal
        x, y = (end[0], end[1] - 1) if is_insertion else (end[0] - 1, end[1])
        if runs and (runs[-1].old, runs[-1].new) == end:
            last = runs.pop()
            end = last.old_end, last.new_end
        runs.append(Run(x, end[0], y, end[1]))
    return runs[::-1]


def unified_lines(old: Sequence[str], new: Sequence[str], show: Callable[[str], str] = str) -> Iterator[str]:
    """Yield a unified diff without a file header: hunks with `@@`, ` `, `-` and `+` at the start of lines.

    `show` converts a line for display.
    """
    for hunk in _hunks(differences(old, new)):
        start, new_start = (max(0, at - CONTEXT) for at in (hunk[0].old, hunk[0].new))
        end = min(len(old), hunk[-1].old_end + CONTEXT)
        new_end = min(len(new), hunk[-1].new_end + CONTEXT)
        yield f"@@ -{_range(start, end)} +{_range(new_start, new_end)} @@"
        for run in hunk:
            yield from (f" {show(line)}" for line in old[start : run.old])
            yield from (f"-{show(line)}" for line in old[run.old : run.old_end])
            yield from (f"+{show(line)}" for line in new[run.new : run.new_end])
            start = run.old_end
        yield from (f" {show(line)}" for line in old[start:end])


def _hunks(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Group the runs whose context overlaps or touches."""
    hunk: list[Run] = []
    for run in runs:
        if hunk and run.old - hunk[-1].old_end > 2 * CONTEXT:
            yield hunk
            hunk = []
        hunk.append(run)
    if hunk:
        yield hunk


def _range(start: int, end: int) -> str:
    """A range of lines as `diff -u` writes it."""
    if end - start == 1:
        return str(start + 1)
    return f"{start + (end > start)},{end - start}"


def unified_diff(before: str, after: str, name: str) -> str:
    """The unified diff of two versions of a file, as `diff -u` prints it; long lines are cut."""
    old, new = _lines(before), _lines(after)
    first = next(iter(differences(old, new)), None)
    if first is None:
        return ""
    at = 0
    if first.old < len(old) and first.new < len(new):
        at = difference_start(old[first.old], new[first.new])

    def show(line: str) -> str:
        return line if len(line) <= _MAX_LINE_LENGTH else cut_line(line, at, _MAX_LINE_LENGTH)

    return "\n".join((f"--- {name}", f"+++ {name}", *unified_lines(old, new, show)))


def _lines(text: str) -> list[str]:
    """The lines of a text; a missing newline at the end is marked as `diff` does."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += "\n\\ No newline at end of file"
    return lines


def difference_start(old: str, new: str) -> int:
    """Return the index shortly before the first difference of two lines."""
    shortest = min(len(old), len(new))
    at = next((at for at in range(shortest) if old[at] != new[at]), shortest)
    return max(0, at - _LEAD_LENGTH)


def cut_line(line: str, start: int, max_length: int) -> str:
    """Return at most `max_length` characters of a line from `start`, with `…` where it is cut."""
    end = start + max_length
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"
