"""Pages of lists, short enough for a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from dittybag.protocol import InvalidParams
from dittybag.protocol.features import PAGE_SIZE

T = TypeVar("T")

#: In characters, of which each may take six bytes on the wire: clients drop messages that are too long.
MAX_PAGE_CHARACTERS: Final = 1_000_000


def start(position: str | int | None) -> int:
    """Where a page begins: after the thing with this number."""
    if position is None:
        return 0
    if not isinstance(position, int):
        raise InvalidParams("Invalid cursor: list again from the start, without a cursor")
    return position


def fitting(
    items: Sequence[T], length: Callable[[T], int], *, most: int = PAGE_SIZE, room: int = MAX_PAGE_CHARACTERS
) -> tuple[Sequence[T], bool]:
    """As many of the items as make a page of `most` items in `room` characters, and whether there are more.

    A page that is not full already takes at least one.
    """
    first = 0 if room < MAX_PAGE_CHARACTERS else 1
    for count, item in enumerate(items):
        room -= length(item)
        if count == most or (room < 0 and count >= first):
            return items[:count], True
    return items, False
