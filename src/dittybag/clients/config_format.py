"""The interface of configuration file formats, and what their parsers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

#: Maximum nesting: far beyond real files, and safe for recursive parsers.
MAX_DEPTH: Final = 200


class ConfigFormat(Protocol):
    """A file format with named entries, each a mapping. Every method may raise `MalformedConfig`."""

    @property
    def key(self) -> str:
        """The name of the object or table that holds the entries."""

    def entries(self, text: str) -> Mapping[str, Any]:
        """All entries by name."""

    def write(self, text: str, name: str, value: Mapping[str, Any]) -> str:
        """Add an entry, or replace its value. Everything else stays the same, to the letter."""

    def remove(self, text: str, name: str) -> str:
        """Remove an existing entry and nothing else."""

    def rest(self, text: str, name: str) -> Any:
        """The data of a text except for this entry, to be compared. An object for no entries is nothing."""


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
