"""What the formats of configuration files have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from dittybag.clients.reversible_edits import Cut

#: Nothing that people write is nested deeper; and parsers are recursive.
MOST_DEPTH: Final = 200


class Found(Struct, frozen=True):
    """An entry that is in a file."""

    #: Where it begins.
    at: int
    #: What it says, and how that is written.
    value: Any
    text: str


class Put(Struct, frozen=True):
    """How an entry gets into a text."""

    cuts: tuple[Cut, ...]
    #: Whether the object of all entries, or even what is around it, had to be made for it.
    with_container: bool = False
    with_root: bool = False


class Format(Protocol):
    """A kind of text with named entries, each a mapping. Every method may raise `Malformed`."""

    def entries(self, text: str) -> Mapping[str, Any]:
        """All entries and what they say."""

    def find(self, text: str, name: str) -> Found | None:
        """An entry, if it is there."""

    def put(self, text: str, name: str, value: Mapping[str, Any]) -> Put:
        """How to add an entry, or to replace what it says."""

    def take(self, text: str, name: str, *, container: bool, root: bool) -> Sequence[tuple[Cut, ...]]:
        """Ways to take out an entry that is there, the neatest first.

        With it go, where nothing else is left in them, the object of all entries and what is around it.
        """

    def give_back(self, text: str, name: str, written: str) -> tuple[Cut, ...]:
        """How to write an entry again as it was written before."""

    def is_put(self, before: str, after: str, name: str, value: Mapping[str, Any]) -> bool:
        """Whether two texts say the same, but that the second has this entry."""

    def is_same_elsewhere(self, before: str, after: str, name: str) -> bool:
        """Whether two texts say the same in everything but this entry."""


def newline_of(text: str) -> str:
    """How most lines of a text end."""
    windows = text.count("\r\n")
    if windows * 2 > text.count("\n"):
        return "\r\n"
    return "\r" if "\r" in text and "\n" not in text else "\n"


def line_of(text: str, at: int) -> int:
    """The number of the line in which a position is."""
    before = text[:at]
    return before.count("\n") + before.count("\r") - before.count("\r\n") + 1
