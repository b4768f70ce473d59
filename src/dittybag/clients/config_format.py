"""The interface of configuration file formats, and what their parsers share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from dittybag.clients.reversible_edits import TextEdit

#: Maximum nesting: far beyond real files, and safe for recursive parsers.
MAX_DEPTH: Final = 200


class FoundEntry(Struct, frozen=True):
    """An entry in a file."""

    #: Its start position.
    at: int
    #: The parsed value, and its source text.
    value: Any
    text: str


class EntryEdits(Struct, frozen=True):
    """The edits that write an entry."""

    edits: tuple[TextEdit, ...]
    #: How many of the objects around the entry they create, from the innermost outwards.
    created: int = 0


class ConfigFormat(Protocol):
    """A file format with named entries, each a mapping. Every method may raise `MalformedConfig`."""

    @property
    def key(self) -> str:
        """The name of the object or table that holds the entries."""

    def entries(self, text: str) -> Mapping[str, Any]:
        """All entries by name."""

    def find(self, text: str, name: str) -> FoundEntry | None:
        """The entry with this name, or `None`."""

    def write_edits(self, text: str, name: str, value: Mapping[str, Any]) -> EntryEdits:
        """The edits that add an entry, or replace its value."""

    def removal_edits(self, text: str, name: str, *, created: int) -> Sequence[tuple[TextEdit, ...]]:
        """Alternative edits that remove an existing entry, the cleanest result first.

        They also remove up to `created` of the objects around the entry, if nothing else is left in them.
        """

    def restore_edits(self, text: str, name: str, source: str) -> tuple[TextEdit, ...]:
        """The edits that replace an entry with the source text it had before."""

    def is_only_change(self, before: str, after: str, name: str, value: Mapping[str, Any]) -> bool:
        """Whether `after` has the same data as `before`, with this entry added or replaced."""

    def is_unchanged_elsewhere(self, before: str, after: str, name: str) -> bool:
        """Whether two texts have the same data except for this entry."""


def detect_newline(text: str) -> str:
    """The line ending that most lines of a text have."""
    windows = text.count("\r\n")
    if windows * 2 > text.count("\n"):
        return "\r\n"
    return "\r" if "\r" in text and "\n" not in text else "\n"


def line_number(text: str, at: int) -> int:
    """The line number of a position, from 1."""
    before = text[:at]
    return before.count("\n") + before.count("\r") - before.count("\r\n") + 1
