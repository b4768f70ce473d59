"""Upkeep of a file between writes: segments of its full-text indexes are merged in small steps.

FTS5 would merge in the commit of a write, which may then take more than a second, see docs/decisions/0031.
"""

from __future__ import annotations

from typing import Final

import apsw

from dittybag.storage.sqlite.index_structure import Level, read_levels
from dittybag.storage.sqlite.migrations.sqlite_migrations import require_current
from dittybag.storage.sqlite.sqlite_connections import WriteTurn
from dittybag.storage.sqlite.sqlite_text_search import FULL_TEXT_INDEXES

#: Seconds without a write before the first step, and between steps, so that other processes can write.
_IDLE_SECONDS: Final = 0.02
_PAUSE_SECONDS: Final = 0.005

#: Segments of a level that are merged: the `usermerge` of the indexes.
_MERGED_SEGMENTS: Final = 16
#: With more segments of a level, steps do not wait until nobody writes: searches would take longer.
_MAX_SEGMENTS: Final = 32
#: How often that is checked, in commits.
_COMMITS_PER_CHECK: Final = 4

#: Pages that a step writes, unless one term has more: about two milliseconds.
_PAGES_PER_STEP: Final = 16
#: In percent. Segments with more deleted rows are merged: the `deletemerge` of FTS5.
_MAX_DELETED: Final = 10


def merge_segments(connection: apsw.Connection, index: str, pages: int) -> bool:
    """Merge segments of an index until this many pages are written. Returns whether there were enough."""
    before = connection.total_changes()
    connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('merge', ?)", (pages,))
    # The statement itself counts as one change: https://www.sqlite.org/fts5.html#the_merge_command
    return connection.total_changes() - before > 1


class FileUpkeep:
    """Merges segments on the connection of the writer and in its thread.

    Raises `apsw.Error` if the connection can no longer be used.
    """

    def __init__(self, connection: apsw.Connection, path: str, turn: WriteTurn) -> None:
        self._turn = turn
        self._connection = connection
        self._path = path
        self._commits = 0
        #: Seconds to wait for a write before the next step; `None` if there is nothing to do.
        self.pause: float | None = None

    def note_commit(self) -> None:
        """Plan steps after a commit. If they are late, take one."""
        self.pause = _IDLE_SECONDS
        self._commits += 1
        # Also after the first one: many processes write only once.
        if self._commits % _COMMITS_PER_CHECK == 1 and (late := self._find_index(_MAX_SEGMENTS)) is not None:
            self._merge(late)

    def take_step(self) -> None:
        """Merge a few pages while nobody writes."""
        index = self._find_index(_MERGED_SEGMENTS)
        self.pause = None if index is None else _PAUSE_SECONDS
        if index is not None:
            self._merge(index)

    def _find_index(self, segments: int) -> str | None:
        """Return an index with this many segments of a level; None without one, or if it cannot be read."""
        try:
            for index in FULL_TEXT_INDEXES:
                if any(_is_due(level, segments) for level in read_levels(self._connection, index)):
                    return index
        except Exception:  # noqa: BLE001  # a damaged index, which the next write or the doctor reports
            return None
        return None

    def _merge(self, index: str) -> None:
        connection = self._connection
        # Nobody waits for it: without a sync, the next write makes it durable, too.
        connection.execute("PRAGMA synchronous = NORMAL")
        try:
            with self._turn:
                connection.execute("BEGIN IMMEDIATE")
                # Another process may have upgraded the schema meanwhile.
                require_current(connection, self._path)
                if not merge_segments(connection, index, _PAGES_PER_STEP):
                    self.pause = None
                connection.execute("COMMIT")
        except Exception:  # noqa: BLE001  # nothing is lost: the next write reports what is wrong
            self.pause = None
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            connection.execute("PRAGMA synchronous = FULL")


def _is_due(level: Level, segments: int) -> bool:
    if len(level.segments) >= segments:
        return True
    if segments > _MERGED_SEGMENTS:
        return False
    rows = sum(segment.rows for segment in level.segments)
    deleted = sum(segment.deleted for segment in level.segments)
    return level.merging > 0 or (rows > 0 and 100 * deleted >= _MAX_DELETED * rows)
