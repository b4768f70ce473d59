"""The word of a text that is nearest to a misspelt word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

#: Words of at most this many letters may have one wrong letter, longer ones two.
_SHORT: Final = 4
#: Shorter words are not corrected.
MIN_LENGTH: Final = 3


def nearest_word(word: str, words: Iterable[str]) -> str | None:
    """Return the nearest of some words, the most frequent one of several; None if none is near."""
    most = 1 if len(word) <= _SHORT else 2
    near: dict[str, int] = {}
    counts = Counter(words)
    for other in counts:
        distance = _distance(word, other, most)
        if 0 < distance <= most:
            near[other] = distance
    return min(near, key=lambda other: (near[other], -counts[other], other), default=None)


def _distance(one: str, other: str, most: int) -> int:
    """Count the letters to insert, delete, replace or swap; return more than `most` if there are too many."""
    if abs(len(one) - len(other)) > most or len(set(one) ^ set(other)) > 2 * most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one):
        following = [at + 1]
        for place, candidate in enumerate(other):
            cost = min(row[place] + (letter != candidate), row[place + 1] + 1, following[place] + 1)
            if at and place and letter == other[place - 1] and one[at - 1] == candidate:
                cost = min(cost, before[place - 1] + 1)
            following.append(cost)
        if min(following) > most:
            return most + 1
        before, row = row, following
    return row[-1]
