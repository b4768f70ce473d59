"""The viewer of a connection, for PostgreSQL's row-level security."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from dittybag.storage.postgres.driver_connections import VIEWER_SETTING
from dittybag.storage.postgres.postgres_connections import PostgresConnection
from dittybag.storage.sql.sql_driver import Bindings

#: The setting of connections that only ever serve the operator, see `0001_create.sql`.
_PERMANENT_OPERATOR: Final = "*"

_SET_FOR_TRANSACTION: Final = f"SELECT set_config('{VIEWER_SETTING}', $1, true)"
#: Settings for searches: a plan for each text, and memory for the positions of many matches in a large table.
SEARCHING: Final = """set_config('plan_cache_mode', 'force_custom_plan', true), set_config(
    'work_mem', greatest(pg_size_bytes(current_setting('work_mem')), 33554432) / 1024 || 'kB', true)"""
#: Settings to compare texts. That takes longer than PostgreSQL expects of an operator, and pages of an
#: index are in memory. Otherwise, PostgreSQL would compare all texts of a project as soon as an index has a
#: list of new entries.
COMPARING: Final = f"""{SEARCHING},
    set_config('cpu_operator_cost', '0.5', true), set_config('random_page_cost', '0.2', true)"""
#: Settings to find and count the rows with a stem, and to read the estimates of PostgreSQL from one plan.
RANKING: Final = f"{COMPARING}, set_config('max_parallel_workers_per_gather', '0', true)"


def viewer_setting(viewer: str | None) -> str:
    """Return the value of the setting for a viewer; None is the operator."""
    return "" if viewer is None else f"user:{viewer}"


def session_setting(viewer: str | None) -> str:
    """Return the value of the setting of connections that serve only the operator, or only users."""
    return _PERMANENT_OPERATOR if viewer is None else viewer_setting(viewer)


class RowSecurity:
    """The viewer of one connection."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        #: The setting between transactions; None if unknown.
        self._session_setting: str | None = None
        #: The current viewer: of the transaction, or else of the session.
        self._viewer: str | None = None

    @property
    def is_operator(self) -> bool:
        """Whether the current viewer is the operator."""
        return self._viewer is None

    def is_set_to(self, viewer: str) -> bool:
        """Whether this user was the last viewer of the session."""
        return self._session_setting == viewer_setting(viewer)

    async def set_for_session(self, viewer: str | None) -> None:
        """Set the viewer from now on. A connection must not change between the operator and users."""
        wanted = session_setting(viewer)
        if wanted != self._session_setting:
            # If this is cancelled, the setting is unknown.
            self._session_setting = None
            await self._connection.set_viewer(wanted)
            self._session_setting = wanted
        self._viewer = viewer

    def assume_for_transaction(self, viewer: str | None) -> None:
        """Record that the viewer of this transaction has been set by other means."""
        self._viewer = viewer

    async def set_for_transaction(self, viewer: str | None) -> None:
        """Set the viewer for the rest of this transaction."""
        await self._connection.fetchval(_SET_FOR_TRANSACTION, viewer_setting(viewer))
        self._viewer = viewer

    @asynccontextmanager
    async def as_operator(self) -> AsyncIterator[None]:
        """Make the operator the viewer in this block, within a transaction.

        The rows that are read must not reach the user. An error ends the transaction and this setting.
        """
        if self._viewer is None:
            yield
            return
        await self._connection.fetchval(_SET_FOR_TRANSACTION, viewer_setting(None))
        yield
        await self._connection.fetchval(_SET_FOR_TRANSACTION, viewer_setting(self._viewer))

    @asynccontextmanager
    async def as_indexed_operator(self, settings: str = SEARCHING) -> AsyncIterator[None]:
        """Make the operator the viewer in this block, with statements that use indexes on texts.

        These statements are planned for the operator, so no other query may have the same text. They are
        planned for each search, because a plan for any text suits neither a rare nor a common one.
        """
        # The settings are left to the end of the transaction, where they do no harm.
        if self._viewer is None:
            await self._connection.fetchval(f"SELECT {settings}")
            yield
            return
        await self._connection.fetchval(f"{_SET_FOR_TRANSACTION}, {settings}", _PERMANENT_OPERATOR)
        yield
        await self._connection.fetchval(_SET_FOR_TRANSACTION, viewer_setting(self._viewer))

    def project_condition(self, project: str, bindings: Bindings) -> str:
        """SQL for whether the policies show the rows of the project of a placeholder.

        For statements that see all rows.
        """
        if self._viewer is None:
            return "true"
        return f"""(NOT EXISTS (SELECT FROM restricted_projects AS restricted
                                WHERE restricted.project = {project})
                    OR EXISTS (SELECT FROM members WHERE members.project = {project}
                               AND user_name = {bindings.add(self._viewer)}))"""

    async def find_keys(self, table: str, key: str, condition: str, bindings: Bindings) -> list[int]:
        """Return the keys of all rows with a condition on texts, also of those that are hidden.

        For a user, PostgreSQL must check the policies of a row before it compares texts, so it cannot use an
        index on texts. The operator therefore finds the keys first. The user's own query must then apply the
        policies to them.
        """
        async with self.as_indexed_operator():
            sql = f"SELECT {key} AS candidate FROM {table} WHERE {condition}"
            return [row[0] for row in await self._connection.fetch(sql, *bindings.values)]
