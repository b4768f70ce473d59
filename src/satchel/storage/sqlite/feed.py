"""News of changes, whichever process made them.

SQLite counts the commits of other connections (`PRAGMA data_version`), which costs microseconds to ask. Only
when that number has moved is the log read, from where we had read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import apsw

from satchel.domain.changes import ChangeNews, Kind
from satchel.storage.sqlite.changes import newest, news_since

#: How often other processes' commits are looked for.
INTERVAL_SECONDS: Final = 0.25

#: After more changes than this at once, everything counts as changed.
MAX_NEWS: Final = 1000


class Feed:
    """Follows the log on a connection of the event loop's thread."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._commits = self._counted()
        self._seq = newest(connection)
        self._stamps: dict[tuple[Kind, int | None], int] = {}
        self._floor = self._seq
        self.listeners: list[Callable[[Sequence[ChangeNews]], Any]] = []

    def _counted(self) -> int:
        return int(self._connection.execute("PRAGMA data_version").get)

    def check(self) -> None:
        """Read what is new, if there is anything, and tell the listeners."""
        commits = self._counted()
        if commits == self._commits:
            return
        self._commits = commits
        found = news_since(self._connection, self._seq, MAX_NEWS)
        if not found:
            return
        for seq, item in found:
            self._stamps[item.kind, item.project] = self._seq = seq
        if len(found) == MAX_NEWS:
            self._seq = self._floor = newest(self._connection)
        for listener in self.listeners:
            listener([item for _, item in found])

    def stamp(self, kind: Kind, project: int | None) -> int:
        """Grows when something of that kind changes in that project."""
        self.check()
        return max(self._stamps.get((kind, project), 0), self._floor)
