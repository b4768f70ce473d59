"""The stems of an entity as a `tsvector`, and the columns that hold them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from dittybag.domain.ranked_search import COLUMN_WEIGHTS, columns_of

#: The largest position, and less than the maximum size of the stems and positions in bytes, see
#: https://www.postgresql.org/docs/current/textsearch-limitations.html.
_MAX_POSITION: Final = 16_383
_MAX_BYTES: Final = 1_000_000
#: The maximum number of bytes of a stem beside its letters and positions.
_OVERHEAD: Final = 4
#: A shorter text of stems and positions fits in any case: a character has at most 4 bytes.
_SAFE_CHARS: Final = _MAX_BYTES // 8

_COLUMNS: Final = len(COLUMN_WEIGHTS)
_MAX_COUNT: Final = (_MAX_POSITION - _COLUMNS + 1) // _COLUMNS
_STEM: Final = re.compile(r"'([^']+)':([0-9A-D,]+)")


def word_columns(texts: Sequence[str]) -> dict[str, Any]:
    """Return the values of the columns for the searched texts of an entity."""
    columns = columns_of(texts)
    positions: dict[str, str] = {}
    for number, column in enumerate(columns):
        for stem, count in _counts(column).items():
            place = (min(_MAX_COUNT, count)) * _COLUMNS + number
            positions[stem] = f"{positions[stem]},{place}" if stem in positions else f"{place}"
    words = " ".join([f"'{stem}':{places}" for stem, places in positions.items()])
    if len(words) > _SAFE_CHARS:
        words = _shortened(positions)
    return {"words": words, "word_count": sum(map(len, columns))}


def _counts(stems: Sequence[str]) -> dict[str, int]:
    """Count stems. Faster than `Counter` for the few of an entity."""
    counts: dict[str, int] = {}
    for stem in stems:
        counts[stem] = counts.get(stem, 0) + 1
    return counts


def _shortened(positions: Mapping[str, str]) -> str:
    """Return the first stems with their positions, as many as fit."""
    parts, size = [], 0
    for stem, places in positions.items():
        size += len(stem.encode()) + 2 * (places.count(",") + 1) + _OVERHEAD
        if size > _MAX_BYTES:
            break
        parts.append(f"'{stem}':{places}")
    return " ".join(parts)


def read_counts(vector: str) -> dict[str, float]:
    """Return the occurrences of each stem of a vector, by column weight."""
    return {stem: _weighted(places) for stem, places in _STEM.findall(vector)}


@lru_cache(4096)
def _weighted(places: str) -> float:
    """Return the occurrences at the positions of a stem, which most texts have in common."""
    total = 0.0
    for place in places.split(","):
        count, column = divmod(int(place.rstrip("ABCD")), _COLUMNS)
        total += count * COLUMN_WEIGHTS[column]
    return total
