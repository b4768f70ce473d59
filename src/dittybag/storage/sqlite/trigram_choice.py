"""Chooses the trigrams of a text by which a large index is searched: the rarest ones.

Each trigram more makes FTS5 read all rows that have it. After a few rare ones, comparing the remaining
candidates with the text takes less time than reading the rows of a frequent trigram.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import apsw

from dittybag.storage.sqlite.index_structure import read_levels

#: Fewer trigrams than this are all used.
_FEW_TRIGRAMS: Final = 3
#: In rows. With less in its largest segment, an index is searched quickly by all trigrams.
_MIN_ROWS: Final = 20_000
#: Rows on a page of the index: one byte each for a frequent trigram, if rows follow each other.
_ROWS_PER_PAGE: Final = 4000
#: Comparing this many candidates with a text takes as long as reading a page of the index.
_CANDIDATES_PER_PAGE: Final = 5

#: The first page after a trigram and the last one that may begin with it. FTS5 puts a zero before each term.
_PAGES: Final = """
SELECT coalesce(
           (SELECT pgno >> 1 FROM {index}_idx WHERE segid = ?1 AND term > ?2 ORDER BY term LIMIT 1), ?3)
     - coalesce(
           (SELECT pgno >> 1 FROM {index}_idx WHERE segid = ?1 AND term <= ?2 ORDER BY term DESC LIMIT 1), 1)
"""


def choose_trigrams(connection: apsw.Connection, index: str, trigrams: Sequence[str]) -> Sequence[str]:
    """Return some of the trigrams, the rarest first; all of them if the index is small."""
    if len(trigrams) < _FEW_TRIGRAMS:
        return trigrams
    segments = [segment for level in read_levels(connection, index) for segment in level.segments]
    largest = max(segments, key=lambda segment: segment.rows, default=None)
    if largest is None or largest.rows < _MIN_ROWS:
        return trigrams
    sql = _PAGES.format(index=index)
    pages = {
        trigram: connection.execute(sql, (largest.id, f"0{trigram}".encode(), largest.pages + 1)).get
        for trigram in trigrams
    }
    return _rarest(pages, largest.rows)


def _rarest(pages: dict[str, int], rows: int) -> list[str]:
    """Return the rarest trigrams, as long as each is worth the pages to read."""
    first, *others = sorted(pages, key=pages.__getitem__)
    chosen = [first]
    candidates = min(rows, pages[first] * _ROWS_PER_PAGE)
    for trigram in others:
        share = min(1.0, pages[trigram] * _ROWS_PER_PAGE / rows)
        if candidates * (1 - share) < pages[trigram] * _CANDIDATES_PER_PAGE:
            break
        chosen.append(trigram)
        candidates = int(candidates * share)
    return chosen
