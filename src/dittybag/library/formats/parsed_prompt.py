"""The result of parsing a file: prompts and problems."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dittybag.domain.errors import clip
from dittybag.domain.libraries import FileProblem
from dittybag.domain.prompts import Argument
from dittybag.domain.role_marks import RoleMark


class ParsedPrompt(Struct, frozen=True, kw_only=True):
    """A prompt as parsed from its file. Its template is not checked yet."""

    key: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[Argument, ...] = ()
    #: Default values of optional arguments.
    defaults: dict[str, str] = {}
    #: None if the text is the content of `file`.
    text: str | None = None
    #: Whether the text is a Jinja template; otherwise it is used verbatim.
    template: bool = False
    #: The file with the text, relative to the library.
    file: str
    #: Number of lines before `text` in the file, for line numbers in errors.
    lines_before: int = 0
    #: Where messages begin in `text`; empty if it is one message of the user.
    roles: tuple[RoleMark, ...] = ()


class ParsedFile(Struct, frozen=True, kw_only=True):
    """The prompts and problems of a file."""

    prompts: tuple[ParsedPrompt, ...] = ()
    problems: tuple[FileProblem, ...] = ()


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
