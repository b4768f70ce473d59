"""The unified diff of an edit, as `diff -u` prints it."""

from __future__ import annotations

import difflib
from typing import Final

_CONTEXT: Final = 3
#: A file may be a single line of megabytes: longer lines are cut to the part around the change.
_MAX_LINE_LENGTH: Final = 400
_LEAD: Final = 60


def unified_diff(before: str, after: str, name: str) -> str:
    """The difference of two texts that differ in one or a few places."""
    old, new = _lines(before), _lines(after)
    begin = 0
    while begin < min(len(old), len(new)) and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < min(len(old), len(new)) - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    # Equal lines at both ends are left out: difflib is slow for millions of lines.
    first = max(0, begin - _CONTEXT)
    last = max(0, end - _CONTEXT)
    old, new = old[first : len(old) - last], new[first : len(new) - last]
    at = _first_difference(old, new)
    shown_old, shown_new = ([_clip(line, at) for line in lines] for lines in (old, new))
    diff = difflib.unified_diff(shown_old, shown_new, name, name, n=_CONTEXT, lineterm="")
    return "\n".join(_renumber(line, first) for line in diff)


def _lines(text: str) -> list[str]:
    """The lines of a text; a missing newline at the end is marked as `diff` does."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += "\n\\ No newline at end of file"
    return lines


def _first_difference(old: list[str], new: list[str]) -> int:
    """The offset of the first difference within the first changed line."""
    for one, other in zip(old, new, strict=False):
        if one != other:
            least = min(len(one), len(other))
            return next((at for at in range(least) if one[at] != other[at]), least)
    return 0


def _clip(line: str, at: int) -> str:
    if len(line) <= _MAX_LINE_LENGTH:
        return line
    start = max(0, at - _LEAD)
    shown = line[start : start + _MAX_LINE_LENGTH]
    return f"{'…' if start else ''}{shown}{'…' if start + _MAX_LINE_LENGTH < len(line) else ''}"


def _renumber(line: str, by: int) -> str:
    """Add the number of omitted lines to the line numbers of a hunk header."""
    if not line.startswith("@@ ") or by == 0:
        return line
    _, old, new, _ = line.split(" ")
    return f"@@ {_shift_range(old, by)} {_shift_range(new, by)} @@"


def _shift_range(numbers: str, by: int) -> str:
    sign, (line, *length) = numbers[0], numbers[1:].split(",")
    return ",".join([f"{sign}{int(line) + by}", *length])
