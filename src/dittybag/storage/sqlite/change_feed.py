"""News of changes, whichever process made them.

SQLite counts the commits of other connections (`PRAGMA data_version`), which costs microseconds to ask. Only
when that number has moved is the log read, from where we had read it.
"""

from __future__ import annotations

from typing import Final

import apsw

from dittybag.domain.changes import ChangeNotification, Kind
from dittybag.storage.sqlite.change_table import newest_seq, notifications_since

#: How often other processes' commits are looked for.
INTERVAL_SECONDS: Final = 0.25

#: So many changes are read at once: what waits meanwhile should not wait long.
MAX_CHANGES_PER_READ: Final = 1000


class ChangeFeed:
    """Follows the log on a connection of the event loop's thread."""

    def __init__(self, connection: apsw.Connection) -> None:
        #: Whether anybody wants to be told.
        self.listening = False
        self._connection = connection
        self._commits = self._data_version()
        self._schema = self._read_schema_version()
        self._restores = 0
        self._seq = self._floor = newest_seq(connection)
        #: Whether there is more to read.
        self.behind = False
        self._stamps: dict[tuple[Kind, int | None], int] = {}
        self._pending: list[ChangeNotification] = []

    def _data_version(self) -> int:
        return int(self._connection.execute("PRAGMA data_version").get)

    def _read_schema_version(self) -> int:
        return int(self._connection.execute("PRAGMA schema_version").get)

    def check(self) -> None:
        """Read what is new."""
        commits = self._data_version()
        if commits == self._commits and not self.behind:
            return
        self._commits = commits
        if (cookie := self._read_schema_version()) != self._schema:
            self._schema = cookie
            self._reset()
        found = notifications_since(self._connection, self._seq, MAX_CHANGES_PER_READ)
        for seq, item in found:
            self._stamps[item.kind, item.project] = self._seq = seq
        if self.listening:
            self._pending += [item for _, item in found]
        self.behind = len(found) == MAX_CHANGES_PER_READ
        if self.behind:
            # Until all of it has been read, everything counts as changed.
            self._floor = newest_seq(self._connection)

    def _reset(self) -> None:
        """The database was restored from a backup: its log is another one, and everything has changed."""
        self._restores += 1
        self._seq = self._floor = newest_seq(self._connection)
        self._stamps.clear()
        self.behind = False
        if self.listening:
            projects = [row[0] for row in self._connection.execute("SELECT id FROM projects")]
            kinds: tuple[Kind, ...] = ("prompt", "resource")
            self._pending = [ChangeNotification(kind, project) for project in projects for kind in kinds]

    def news(self) -> list[ChangeNotification]:
        """What nobody has been told of yet, as soon as all of it has been read."""
        self.check()
        if self.behind:
            return []
        told, self._pending = self._pending, []
        return told

    def stamp(self, kind: Kind, project: int | None) -> int:
        """Grows when something of that kind changes in that project."""
        self.check()
        return (self._restores << 64) + max(self._stamps.get((kind, project), 0), self._floor)
