"""Pages of lists, limited so that each fits into a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from dittybag.protocol.features import PAGE_SIZE
from dittybag.protocol.wire_errors import InvalidParams

T = TypeVar("T")

#: A character takes up to six bytes on the wire, and clients drop messages that are too long.
MAX_PAGE_CHARACTERS: Final = 1_000_000


def parse_position(position: str | int | None) -> int:
    """Return the number after which a page begins, 0 for the first page. Raises `InvalidParams`."""
    if position is None:
        return 0
    if not isinstance(position, int):
        raise InvalidParams("Invalid cursor: restart the list without a cursor")
    return position


def take_page(
    items: Sequence[T],
    length: Callable[[T], int],
    *,
    limit: int = PAGE_SIZE,
    max_characters: int = MAX_PAGE_CHARACTERS,
) -> tuple[Sequence[T], bool]:
    """Return the first items, within `limit` items and `max_characters`, and whether more follow.

    Unless another list has used a part of the page already, it has at least one item.
    """
    minimum = 0 if max_characters < MAX_PAGE_CHARACTERS else 1
    remaining = max_characters
    for count, item in enumerate(items):
        remaining -= length(item)
        if count == limit or (remaining < 0 and count >= minimum):
            return items[:count], True
    return items, False
