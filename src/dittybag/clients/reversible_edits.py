"""Edits of a text that can be taken back exactly, also when the text has changed elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Cut(Struct, frozen=True):
    """A piece of a text, and what comes in its place."""

    start: int
    end: int
    text: str


class Splice(Struct, frozen=True, array_like=True):
    """A piece that an edit has put in, where it stands, and what it stands for."""

    #: Where it begins; in a record, how far from the entry.
    at: int
    old: str
    new: str


def spliced(text: str, cuts: Sequence[Cut]) -> tuple[str, tuple[Splice, ...]]:
    """The text after cuts that do not overlap, in their order; and what takes them back."""
    pieces: list[str] = []
    splices: list[Splice] = []
    done = length = 0
    for cut in cuts:
        kept = text[done : cut.start]
        splices.append(Splice(length + len(kept), text[cut.start : cut.end], cut.text))
        pieces += (kept, cut.text)
        length += len(kept) + len(cut.text)
        done = cut.end
    pieces.append(text[done:])
    return "".join(pieces), tuple(splices)


def moved(splices: Sequence[Splice], by: int) -> tuple[Splice, ...]:
    """The same splices, counted from elsewhere."""
    return tuple(Splice(splice.at + by, splice.old, splice.new) for splice in splices)


def fit(text: str, splices: Sequence[Splice]) -> bool:
    """Whether everything that an edit has put in still stands where it should."""
    return bool(splices) and all(
        splice.at >= 0 and text.startswith(splice.new, splice.at) for splice in splices
    )


def taken_back(text: str, splices: Sequence[Splice]) -> str:
    """The text before an edit, whose splices must fit."""
    cuts = [Cut(splice.at, splice.at + len(splice.new), splice.old) for splice in splices]
    return spliced(text, cuts)[0]


def followed(splices: Sequence[Splice], text: str, cuts: Sequence[Cut]) -> tuple[Splice, ...]:
    """What takes back an edit and the cuts made after it, in one; nothing if they cannot be told apart."""
    all_of_them = list(splices)
    for cut in reversed(cuts):
        grown = len(cut.text) - (cut.end - cut.start)
        after: list[Splice] = []
        own = Splice(cut.start, text[cut.start : cut.end], cut.text)
        for splice in all_of_them:
            end = splice.at + len(splice.new)
            if splice.at <= cut.start and cut.end <= end:
                begin, rest = cut.start - splice.at, cut.end - splice.at
                own = Splice(splice.at, splice.old, splice.new[:begin] + cut.text + splice.new[rest:])
            elif splice.at >= cut.end:
                after.append(Splice(splice.at + grown, splice.old, splice.new))
            elif end <= cut.start:
                after.append(splice)
            else:
                return ()
        all_of_them = sorted([*after, own], key=lambda splice: splice.at)
    return tuple(all_of_them)
