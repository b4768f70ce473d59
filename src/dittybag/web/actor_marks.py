"""Marks of actors: letters, a colour and a shape that tell them apart in lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final
from zlib import crc32

from msgspec import Struct

#: The style sheet has this many colours.
COLOURS: Final = 8
_WEB_SUFFIX: Final = " via web"
_WORD: Final = r"[^\W_]+"


class ActorMark(Struct, frozen=True):
    """How an actor is marked beside its name."""

    #: One or two characters.
    letters: str
    #: The number of a colour.
    colour: int


class ActorMarks:
    """The marks of the actors of a page. No two have the same letters, and few the same colour."""

    def __init__(self, actors: Iterable[str]) -> None:
        self._marks: dict[str, ActorMark] = {}
        for actor in sorted(set(actors)):
            self._add(actor)

    def of(self, actor: str) -> ActorMark:
        """Return the mark of an actor."""
        if actor not in self._marks:
            self._add(actor)
        return self._marks[actor]

    def _add(self, actor: str) -> None:
        used_letters = {mark.letters.upper() for mark in self._marks.values()}
        letters = next((letters for letters in _proposals(actor) if letters.upper() not in used_letters), "?")
        used = {mark.colour for mark in self._marks.values()}
        # The colour follows from the name, so that it is the same on other pages, too.
        wanted = [(crc32(actor.encode("utf-8", "replace")) + step) % COLOURS for step in range(COLOURS)]
        colour = next((colour for colour in wanted if colour not in used), wanted[0])
        self._marks[actor] = ActorMark(letters, colour)


def _proposals(actor: str) -> Iterator[str]:
    """Yield letters for an actor: initials, the first letter with each later one, and with digits."""
    words = re.findall(_WORD, actor.removesuffix(_WEB_SUFFIX)) or ["?"]
    if len(words) > 1:
        yield (words[0][0] + words[1][0]).upper()
    first, rest = words[0][0].upper(), "".join(words)[1:]
    yield from (first + letter.lower() for letter in rest)
    yield first
    yield from (f"{first}{digit}" for digit in range(1, 10))
