"""Pages of lists, short enough for a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from satchel.protocol import InvalidParams
from satchel.protocol.features import PAGE_SIZE

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


def fitting(items: Sequence[T], length: Callable[[T], int]) -> tuple[Sequence[T], bool]:
    """As many of the items as make a page, at least one, and whether there are more."""
    room = MAX_PAGE_CHARACTERS
    for count, item in enumerate(items):
        room -= length(item)
        if count == PAGE_SIZE or (room < 0 and count):
            return items[:count], True
    return items, False
