"""Notifications of changes made by any process.

`PRAGMA data_version` changes when another connection commits, and takes microseconds to query. The change log
is read only after that, from the last `seq` that was read.
"""

from __future__ import annotations

from typing import Final

from dittybag.domain.changes import ChangeNotification
from dittybag.domain.entities import Kind
from dittybag.storage.sql.sql_driver import Row
from dittybag.storage.sqlite.sqlite_driver import run_synchronously
from dittybag.storage.sqlite.sqlite_queries import SqliteTables

#: How often to poll for commits of other processes.
INTERVAL_SECONDS: Final = 0.25

#: At most this many changes are read at once, to keep the event loop responsive.
MAX_CHANGES_PER_READ: Final = 1000


class ChangeFeed:
    """Follows the change log on a connection of the event loop's thread."""

    def __init__(self, tables: SqliteTables) -> None:
        #: Whether there are listeners.
        self.listening = False
        self._connection = tables.connection
        self._changes = tables.changes
        self._commits = self._data_version()
        self._schema = self._read_schema_version()
        self._restores = 0
        self._seq = self._floor = self._newest_seq()
        self._last_change = self._read_last_change()
        #: Whether there is more to read.
        self.behind = False
        self._stamps: dict[tuple[Kind, int | None], int] = {}
        self._pending: list[ChangeNotification] = []

    def _newest_seq(self) -> int:
        return run_synchronously(self._changes.newest_seq())

    def _data_version(self) -> int:
        return int(self._connection.execute("PRAGMA data_version").get)

    def _read_schema_version(self) -> int:
        return int(self._connection.execute("PRAGMA schema_version").get)

    def _read_last_change(self) -> Row | None:
        """Return what tells the last change that was read from one with the same `seq` in another log."""
        sql = "SELECT at, actor, entity FROM changes WHERE seq = ?"
        return self._connection.execute(sql, (self._seq,)).fetchone()

    def check(self) -> None:
        """Read new changes."""
        commits = self._data_version()
        if commits == self._commits and not self.behind:
            return
        self._commits = commits
        if (cookie := self._read_schema_version()) != self._schema:
            self._schema = cookie
            if self._read_last_change() != self._last_change:
                self._reset()
        found = run_synchronously(self._changes.notifications_since(self._seq, MAX_CHANGES_PER_READ))
        for seq, item in found:
            self._stamps[item.kind, item.project] = self._seq = seq
        if found:
            self._last_change = self._read_last_change()
        if self.listening:
            self._pending += [item for _, item in found]
        self.behind = len(found) == MAX_CHANGES_PER_READ
        if self.behind:
            # Until the rest has been read, every stamp counts as changed.
            self._floor = self._newest_seq()

    def _reset(self) -> None:
        """Start over after a restore: the change log is another one, and everything counts as changed.

        A migration and VACUUM change the version of the schema too, but leave the log as it is.
        """
        self._restores += 1
        self._seq = self._floor = self._newest_seq()
        self._last_change = self._read_last_change()
        self._stamps.clear()
        self.behind = False
        if self.listening:
            self._pending = run_synchronously(self._changes.notifications_of_everything())

    def take_notifications(self) -> list[ChangeNotification]:
        """Return and clear pending notifications; none until all new changes have been read."""
        self.check()
        if self.behind:
            return []
        notifications, self._pending = self._pending, []
        return notifications

    def stamp(self, kind: Kind, project: int | None) -> int:
        """Return a number that grows when an entity of that kind changes in that project."""
        self.check()
        return (self._restores << 64) + max(self._stamps.get((kind, project), 0), self._floor)
