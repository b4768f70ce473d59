"""Prompt libraries: folders of prompt files, which Dittybag only reads."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from dittybag.domain.prompts import CONTENT_BYTES, Argument
from dittybag.domain.text import composed

#: Maximum size of a template, and of every other file that is read. A template is as large as any content.
SOURCE_BYTES: Final = CONTENT_BYTES
#: Maximum size of all arguments of a template together, and of all files that it includes.
INPUT_BYTES: Final = 1024 * 1024
#: Maximum size of a rendered template: the largest template with the largest arguments.
OUTPUT_BYTES: Final = SOURCE_BYTES + INPUT_BYTES


class FileProblem(Struct, frozen=True):
    """A problem with a file of a library."""

    #: Relative to the library, with "/" as separator.
    file: str
    message: str
    line: int | None = None
    #: An error makes a prompt or a library unavailable; a warning does not.
    level: Literal["error", "warning"] = "error"


class LibraryPrompt(Struct, frozen=True, kw_only=True):
    """A prompt of a library, as shown in lists."""

    library: str
    key: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[Argument, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.library}:{self.key}"


class LibraryReport(Struct, frozen=True, kw_only=True):
    """The state of a library and its problems."""

    #: Empty if no name can be derived from the folder.
    name: str
    folder: str
    #: Number of prompts by format.
    formats: dict[str, int] = {}
    problems: tuple[FileProblem, ...] = ()
    #: Files that were not read as prompts, and the reasons.
    skipped: dict[str, str] = {}

    @property
    def prompts(self) -> int:
        return sum(self.formats.values())


def library_name(folder: str) -> str:
    """Return the library name for a folder name; empty if no valid character remains."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in composed(folder).lower()).strip("_")
