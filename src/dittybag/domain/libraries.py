"""Prompt libraries: folders of prompt files, read-only to everybody but their authors."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from dittybag.domain.prompts import TEMPLATE_BYTES, Argument

#: A template has at most so many bytes.
SOURCE_BYTES: Final = TEMPLATE_BYTES
#: A file that is more than a template may be larger: a manifest, or a text that is handed out as it is.
FILE_BYTES: Final = 256 * 1024
#: What a template makes has at most so many bytes.
OUTPUT_BYTES: Final = 1024 * 1024


class FileProblem(Struct, frozen=True):
    """Something wrong with a file of a library, as a sentence."""

    #: Relative to the library, with "/".
    file: str
    message: str
    line: int | None = None
    #: An error costs a prompt or a library; a warning does not.
    level: Literal["error", "warning"] = "error"


class LibraryPrompt(Struct, frozen=True, kw_only=True):
    """A prompt of a library, as lists show it."""

    library: str
    key: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[Argument, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.library}:{self.key}"


class LibraryReport(Struct, frozen=True, kw_only=True):
    """How a library is doing."""

    #: Nothing if its folder cannot give it one.
    name: str
    folder: str
    #: How many prompts there are of each format.
    formats: dict[str, int] = {}
    problems: tuple[FileProblem, ...] = ()
    #: Files that hold no prompts, and why they are thought not to.
    skipped: dict[str, str] = {}

    @property
    def prompts(self) -> int:
        return sum(self.formats.values())


def library_name(folder: str) -> str:
    """What a library in a folder of this name is called; nothing if no character is left."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in folder.lower()).strip("_")
