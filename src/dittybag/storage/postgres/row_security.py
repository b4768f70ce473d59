"""Who is looking through a connection, which PostgreSQL is told so that it shows only what they may see."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from dittybag.storage.postgres.connections import Connection
from dittybag.storage.postgres.rows import Bindings, all_rows

#: What the setting says where the operator looks for good: see the migration that guards rows.
_PERMANENT_OPERATOR: Final = "*"

_SET_FOR_TRANSACTION: Final = "SELECT set_config('dittybag.viewer', $1, true)"


def viewer_setting(viewer: str | None) -> str:
    """What the setting says for somebody who looks for the moment; nothing is the operator."""
    return "" if viewer is None else f"user:{viewer}"


class RowSecurity:
    """Who is looking through one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        #: As the setting has it between transactions; nothing if that is not known.
        self._kept: str | None = None
        #: The user who looks for the rest of a transaction, or else between transactions.
        self._user: str | None = None

    def is_set_to(self, viewer: str) -> bool:
        """Whether it was this user who looked last."""
        return self._kept == viewer_setting(viewer)

    async def begin(self, viewer: str | None) -> None:
        """From now on a user is looking, or the operator: a connection is for the one or for the other."""
        wanted = _PERMANENT_OPERATOR if viewer is None else viewer_setting(viewer)
        if wanted != self._kept:
            # Should this be cancelled, nobody knows which of them it is.
            self._kept = None
            await self._connection.fetchval("SELECT set_config('dittybag.viewer', $1, false)", wanted)
            self._kept = wanted
        self._user = viewer

    def assume_for_transaction(self, viewer: str | None) -> None:
        """For the rest of this transaction PostgreSQL has been told another one."""
        self._user = viewer

    async def set_for_transaction(self, viewer: str | None) -> None:
        """For the rest of this transaction a user is looking, or the operator."""
        await self._connection.fetchval(_SET_FOR_TRANSACTION, viewer_setting(viewer))
        self._user = viewer

    @asynccontextmanager
    async def as_operator(self, how: str = "") -> AsyncIterator[None]:
        """In this block, in the middle of a transaction, the operator is looking.

        What is found must not be shown. Should it fail, so does the transaction, and with it this ends.
        """
        if self._user is None:
            yield
            return
        await self._connection.fetchval(_SET_FOR_TRANSACTION, how)
        yield
        await self._connection.fetchval(_SET_FOR_TRANSACTION, viewer_setting(self._user))

    async def indexed_condition(self, table: str, condition: str, bindings: Bindings) -> tuple[str, Bindings]:
        """A condition for the same rows that finds them quickly, whoever is looking.

        For a user, PostgreSQL looks first at who may see a row, and only then at a text in it, without any
        index on texts. So the operator looks for the numbers; which of them the user may see is up to
        the condition's own query.
        """
        if self._user is None:
            return condition, bindings
        async with self.as_operator(_PERMANENT_OPERATOR):
            # Prepared for the operator for good, so nothing else may have these very words.
            sql = f"SELECT number AS to_be_narrowed FROM {table} WHERE {condition}"
            rows = await all_rows(self._connection, sql, *bindings.values)
        return "number = ANY($1)", Bindings([row[0] for row in rows])
