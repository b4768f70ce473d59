"""The result of parsing a file: its prompts and problems."""

from __future__ import annotations

from msgspec import Struct

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
