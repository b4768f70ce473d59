"""Checkpoints of the write-ahead log: a thread copies it into the file, so that no write waits for that.

SQLite would do so in the commit of a write, which then waits for two syncs of the disk more.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Final

import apsw

from dittybag.domain.errors import StorageError
from dittybag.storage.sqlite.sqlite_connections import connect

#: Pages in the log between two checkpoints: the default of SQLite.
_PAGES: Final = 1000
#: The last pages, which the writer copies, in about two milliseconds: only if nobody writes meanwhile, the
#: log starts over. One that grows makes commits slower, because the file system records its new size.
_REST: Final = 250
#: With more pages in the log, somebody has been reading all the time. Upkeep waits until the log starts over.
_LONG: Final = 8 * _PAGES
#: With more pages in the log, the writer copies all that is left.
_MAX_PAGES: Final = 16 * _PAGES

_CHECKPOINT: Final = "PRAGMA wal_checkpoint(PASSIVE)"


class LogCheckpoints:
    """Follows the commits of a connection."""

    def __init__(self, connection: apsw.Connection, path: str) -> None:
        self._writer = connection
        self._path = path
        #: The number of pages in the log, and with how many the next checkpoint is due.
        self._pages, self._next = 0, _PAGES
        #: Whether the thread has copied all pages but the last ones.
        self._is_copied = False
        self._thread: threading.Thread | None = None
        self._wanted = threading.Event()
        self._closing = False
        self._connection: apsw.Connection | None = None
        # Replaces the automatic checkpoints of this connection.
        connection.set_wal_hook(self._note_commit)

    def _note_commit(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        """Called by SQLite after each commit with the number of pages in the log."""
        if pages < self._pages:
            # The log has started over.
            self._next = _PAGES
        self._pages = pages
        if pages >= self._next:
            self._next = pages + _PAGES
            self._wanted.set()
        return apsw.SQLITE_OK

    @property
    def is_late(self) -> bool:
        """Whether the log is long, because it could not start over."""
        return self._pages >= _LONG

    def run(self) -> None:
        """Start a checkpoint if one is due. Called in the thread of the writer, not in a transaction."""
        if self.is_late and not self._is_copied:
            self._wanted.set()
        if self._wanted.is_set() and self._thread is None:
            thread = threading.Thread(target=self._run, name="dittybag-checkpoints", daemon=True)
            # Without a thread, the log is copied by the next line, and when the file is closed.
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread
        if self._is_copied or self._pages >= _MAX_PAGES:
            self._is_copied = False
            with suppress(apsw.Error):
                _, pages, copied = self._writer.execute(_CHECKPOINT).get
                if copied == pages:
                    # The next commit starts the log over, unless somebody still reads from it.
                    self._pages, self._next = 0, _PAGES

    def _run(self) -> None:
        # A write reports what is wrong with the file.
        with suppress(apsw.Error, StorageError):
            self._connection = connect(self._path, writable=True)
        while self._wanted.wait() and not self._closing:
            self._wanted.clear()
            if self._connection is not None:
                with suppress(apsw.Error):
                    self._copy(self._connection)
        if self._connection is not None:
            self._connection.close()

    def _copy(self, connection: apsw.Connection) -> None:
        """Copy all pages but the last ones. Writes go on meanwhile, so there are more when a step ends."""
        copied = before = 0
        while self._pages - copied > _REST and not self._closing:
            _, _, copied = connection.execute(_CHECKPOINT).get
            if copied == before:
                # Somebody reads a state of the file that the others would overwrite.
                return
            before = copied
        self._is_copied = True

    def close(self) -> None:
        """End the thread. Closing the last connection copies the rest of the log."""
        self._closing = True
        self._wanted.set()
        if self._connection is not None:
            with suppress(apsw.Error):
                self._connection.interrupt()
        if self._thread is not None:
            self._thread.join()
