"""Removal of deleted data from a SQLite file: from search indexes, free pages and the write-ahead log."""

from __future__ import annotations

from dittybag.domain.errors import StorageBusy
from dittybag.storage.sqlite.sqlite_connections import OpenFiles, connect, translate_errors
from dittybag.storage.sqlite.sqlite_text_search import FULL_TEXT_INDEXES


def scrub(path: str) -> None:
    """Rewrite the file without deleted data.

    Raises `StorageBusy` if another process reads an older state for too long.
    """
    connection = connect(path, writable=True)
    try:
        with translate_errors(path):
            # The copy that VACUUM makes can be too large for memory.
            connection.execute("PRAGMA temp_store = FILE")
            for index in FULL_TEXT_INDEXES:
                # A deleted row stays in the segments of a full-text index until they are merged.
                connection.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")
            files = OpenFiles(path)
            # Rewrites every page: deleted rows also leave bytes in pages that are still in use.
            connection.execute("VACUUM")
            files.require_in_place()
            is_busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
        if is_busy:
            raise StorageBusy(path)
    finally:
        connection.close()
