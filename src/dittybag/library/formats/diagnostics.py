"""The problems that a parser finds in one file."""

from __future__ import annotations

from typing import Final

from dittybag.domain.errors import clip
from dittybag.domain.libraries import FileProblem

#: Maximum number of problems reported per file.
MAX_PROBLEMS: Final = 100


class Diagnostics:
    """Collects the problems of a file. `key`: the key of its prompt, from its path."""

    def __init__(self, file: str, key: str = "") -> None:
        self.file = file
        self.key = key
        self._found: list[FileProblem] = []

    def error(self, message: str, line: int | None = None) -> None:
        """Report a problem because of which a prompt is missing."""
        self._found.append(FileProblem(self.file, clip(message, 1000), line, "error"))

    def warning(self, message: str, line: int | None = None) -> None:
        """Report a problem that does not affect the list of prompts."""
        self._found.append(FileProblem(self.file, clip(message, 1000), line, "warning"))

    @property
    def problems(self) -> tuple[FileProblem, ...]:
        if len(self._found) <= MAX_PROBLEMS:
            return tuple(self._found)
        left = self._found[MAX_PROBLEMS:]
        level = max((problem.level for problem in left), key="error".__eq__)
        more = FileProblem(self.file, f"And {len(left)} more problems", None, level)
        return (*self._found[:MAX_PROBLEMS], more)
