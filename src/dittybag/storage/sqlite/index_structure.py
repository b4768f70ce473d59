"""The segments of a full-text index in SQLite, as FTS5 records them.

The format is that of `fts5StructureWrite` in SQLite's ext/fts5/fts5_index.c. FTS5 has no query for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import apsw
from msgspec import Struct

#: After the cookie of four bytes: the record also has what an index with deleted rows needs.
_WITH_DELETIONS: Final = b"\xff\x00\x00\x01"


class Segment(Struct, frozen=True):
    """A sorted part of an index. Each commit adds one."""

    id: int
    pages: int
    #: The number of rows, and of those that were deleted later.
    rows: int = 0
    deleted: int = 0


class Level(Struct, frozen=True):
    """Segments that are merged into one of the next level."""

    segments: list[Segment]
    #: How many of them are being merged.
    merging: int


def read_levels(connection: apsw.Connection, index: str) -> list[Level]:
    """Return the levels of an index, that of the newest segments first; none if the record is damaged."""
    record: bytes = connection.execute(f"SELECT block FROM {index}_data WHERE id = 10").get or b""
    has_deletions = record[4:8] == _WITH_DELETIONS
    numbers = iter(read_varints(record[8 if has_deletions else 4 :]))
    level_count, _, _ = next(numbers, 0), next(numbers, 0), next(numbers, 0)
    try:
        return [_read_level(numbers, has_deletions=has_deletions) for _ in range(level_count)]
    except StopIteration:
        # FTS5 reports it with the next query.
        return []


def _read_level(numbers: Iterator[int], *, has_deletions: bool) -> Level:
    merging, count = next(numbers), next(numbers)
    return Level([_read_segment(numbers, has_deletions=has_deletions) for _ in range(count)], merging)


def _read_segment(numbers: Iterator[int], *, has_deletions: bool) -> Segment:
    number, first, last = next(numbers), next(numbers), next(numbers)
    if not has_deletions:
        return Segment(number, last - first + 1)
    _oldest, _newest, _deletion_pages = next(numbers), next(numbers), next(numbers)
    deleted, rows = next(numbers), next(numbers)
    return Segment(number, last - first + 1, rows, deleted)


def read_varints(record: bytes) -> list[int]:
    """Return the numbers of a record in SQLite's format: seven bits a byte, the highest first."""
    numbers: list[int] = []
    value = length = 0
    for byte in record:
        length += 1
        if length == 9:  # the ninth byte has eight bits
            numbers.append(value << 8 | byte)
            value = length = 0
            continue
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = length = 0
    return numbers
