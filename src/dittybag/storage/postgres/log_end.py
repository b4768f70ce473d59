"""The end of the change log and the viewer of a write transaction."""

from __future__ import annotations

from dittybag.storage.postgres.postgres_queries import PostgresTables
from dittybag.storage.postgres.row_security import viewer_setting
from dittybag.storage.sql.sql_transaction import LogEnd

#: The viewer need not be able to see the last change, so it is read first.
_READ_AND_SET_VIEWER = """WITH found AS MATERIALIZED (SELECT coalesce(max(seq), 0) AS seq FROM changes)
                          SELECT seq, set_config('dittybag.viewer', $1, true) FROM found"""


class ViewedLogEnd(LogEnd):
    """The end of the log, read before the viewer changes from the operator to a user."""

    def __init__(self, tables: PostgresTables) -> None:
        super().__init__(tables)
        self._connection = tables.connection
        self._row_security = tables.row_security
        self._viewer: str | None = None

    async def set_viewer(self, viewer: str | None) -> None:
        """Set the viewer for the rest of the transaction, which begins with the operator."""
        if viewer == self._viewer:
            return
        if self._seq is None:
            row = await self._connection.fetchrow(_READ_AND_SET_VIEWER, viewer_setting(viewer))
            self._seq = int(row[0])
            self._row_security.assume_for_transaction(viewer)
        else:
            await self._row_security.set_for_transaction(viewer)
        self._viewer = viewer
