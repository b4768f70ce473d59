"""What an edit changes, for people: the lines around it, as `diff -u` shows them."""

from __future__ import annotations

import difflib
from typing import Final

_CONTEXT: Final = 3
#: A file may be one single line of megabytes: then only the surroundings of the change are shown.
_MOST_LETTERS: Final = 400
_LEAD: Final = 60


def unified(before: str, after: str, name: str) -> str:
    """The difference of two texts that differ in one place or in a few."""
    old, new = _lines(before), _lines(after)
    begin = 0
    while begin < min(len(old), len(new)) and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < min(len(old), len(new)) - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    # What is the same at both ends can be millions of lines, and takes difflib its time.
    first = max(0, begin - _CONTEXT)
    last = max(0, end - _CONTEXT)
    old, new = old[first : len(old) - last], new[first : len(new) - last]
    at = _difference(old, new)
    was, becomes = ([_clipped(line, at) for line in lines] for lines in (old, new))
    made = difflib.unified_diff(was, becomes, name, name, n=_CONTEXT, lineterm="")
    return "\n".join(_moved(line, first) for line in made)


def _lines(text: str) -> list[str]:
    """The lines of a text; what is missing at the end of the last one is said as diff says it."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += "\n\\ No newline at end of file"
    return lines


def _difference(old: list[str], new: list[str]) -> int:
    """How far into a line the change is, where one line became another."""
    for one, other in zip(old, new, strict=False):
        if one != other:
            least = min(len(one), len(other))
            return next((at for at in range(least) if one[at] != other[at]), least)
    return 0


def _clipped(line: str, at: int) -> str:
    if len(line) <= _MOST_LETTERS:
        return line
    start = max(0, at - _LEAD)
    shown = line[start : start + _MOST_LETTERS]
    return f"{'…' if start else ''}{shown}{'…' if start + _MOST_LETTERS < len(line) else ''}"


def _moved(line: str, by: int) -> str:
    """A line of a difference; those that number lines count from the beginning of the file."""
    if not line.startswith("@@ ") or by == 0:
        return line
    _, old, new, _ = line.split(" ")
    return f"@@ {_counted(old, by)} {_counted(new, by)} @@"


def _counted(numbers: str, by: int) -> str:
    sign, (line, *length) = numbers[0], numbers[1:].split(",")
    return ",".join([f"{sign}{int(line) + by}", *length])
