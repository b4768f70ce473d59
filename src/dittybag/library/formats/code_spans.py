"""Find the code spans of a Markdown text."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final, Literal

_FENCE: Final = re.compile(r"[ \t>]*(?:[-*+][ \t]+|\d{1,3}[.)][ \t]+)?(`{3,}|~{3,})([^\n]*)")
_TICKS: Final = re.compile(r"`+")


class CodeSpans:
    """Fenced blocks, and inline code that starts and ends on one line."""

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._kinds: list[Literal["fenced", "inline"]] = []
        fence = ""
        at = 0
        for line in text.splitlines(keepends=True):
            found = _FENCE.match(line)
            if fence:
                self._add(at, at + len(line), "fenced")
                if found and found[1].startswith(fence) and not found[2].strip():
                    fence = ""
            elif found and "`" not in found[2]:
                fence = found[1]
                self._add(at, at + len(line), "fenced")
            else:
                self._inline(line, at)
            at += len(line)

    def kind(self, at: int) -> Literal["fenced", "inline"] | None:
        """The kind of code at this index; None if it is not code."""
        index = bisect_right(self._starts, at) - 1
        return self._kinds[index] if index >= 0 and at < self._ends[index] else None

    def _add(self, start: int, end: int, kind: Literal["fenced", "inline"]) -> None:
        self._starts.append(start)
        self._ends.append(end)
        self._kinds.append(kind)

    def _inline(self, line: str, offset: int) -> None:
        """Find inline code: a run of backquotes is closed by a run of the same length."""
        ticks = [(found.start(), found.end()) for found in _TICKS.finditer(line)]
        following: dict[int, int] = {}
        partner = [0] * len(ticks)
        for index in range(len(ticks) - 1, -1, -1):
            length = ticks[index][1] - ticks[index][0]
            partner[index] = following.get(length, 0)
            following[length] = index
        index = 0
        while index < len(ticks):
            closing = partner[index]
            if closing:
                self._add(offset + ticks[index][0], offset + ticks[closing][1], "inline")
                index = closing
            index += 1
