"""Drafts: prompts as their files describe them, before any template is looked at."""

from __future__ import annotations

from msgspec import Struct

from dittybag.domain.libraries import FileProblem
from dittybag.domain.prompts import Argument


class ParsedPrompt(Struct, frozen=True, kw_only=True):
    """A prompt as its file describes it."""

    key: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[Argument, ...] = ()
    #: Values for arguments that are not given; such arguments are optional.
    defaults: dict[str, str] = {}
    #: None if the text is the whole of `file`.
    text: str | None = None
    #: Whether the text is a Jinja template; else it is handed out verbatim.
    template: bool = False
    #: Where the text is, relative to the library.
    file: str
    #: Lines of the file that stand before `text`, for line numbers in errors.
    lines_before: int = 0


class ParsedFile(Struct, frozen=True, kw_only=True):
    """What a file turned out to hold."""

    drafts: tuple[ParsedPrompt, ...] = ()
    problems: tuple[FileProblem, ...] = ()
