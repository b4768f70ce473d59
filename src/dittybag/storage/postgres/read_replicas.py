"""Read replicas, which answer lists and searches as long as they know everything that is committed.

A read first asks the primary for the ends of its logs. A replica answers only if its snapshot contains them.
So a read misses no change, and no end of a membership, that was committed before it began. A replica that is
behind or fails is left out until it has caught up. The caller notices nothing: the primary answers instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal, TypeVar

from msgspec import Struct

from dittybag.domain.errors import StorageError
from dittybag.domain.ports import ReplicaStatus
from dittybag.storage.postgres.driver_connections import VIEWER_SETTING
from dittybag.storage.postgres.postgres_connections import ConnectionLost, PostgresAddress
from dittybag.storage.postgres.postgres_queries import PostgresTables
from dittybag.storage.postgres.reader_connections import ReaderConnections, run_in_snapshot
from dittybag.storage.postgres.row_security import session_setting

T = TypeVar("T")

#: The pauses before a replica is tried again: at first a few milliseconds, as long as it may only be behind.
_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 5.0

_LOG_ENDS: Final = """
SELECT (SELECT coalesce(max(seq), 0) FROM changes) AS seq,
       (SELECT coalesce(max(number), 0) FROM account_events) AS account_event,
       (SELECT coalesce(max(number), 0) FROM applied_migrations) AS schema_version
"""

#: The viewer need not be able to see the ends, so they are read first.
_LOG_ENDS_ON_REPLICA: Final = f"""
WITH ends AS MATERIALIZED ({_LOG_ENDS})
SELECT ends.*, pg_is_in_recovery(), set_config('{VIEWER_SETTING}', $1, true) FROM ends
"""

_AS_OPERATOR: Final = f"SELECT set_config('{VIEWER_SETTING}', '', true)"

ReplicaState = Literal["used", "behind", "failing"]


class LogEnds(Struct, frozen=True):
    """The end of everything that a read depends on."""

    seq: int
    account_event: int
    schema_version: int

    def contain(self, others: LogEnds) -> bool:
        return (
            self.seq >= others.seq
            and self.account_event >= others.account_event
            and self.schema_version == others.schema_version
        )


async def read_log_ends(tables: PostgresTables) -> LogEnds:
    """Read the ends on the primary, as the operator."""
    return LogEnds(*await tables.connection.fetchrow(_LOG_ENDS))


class _Behind(Exception):
    """The snapshot of a replica lacks changes."""


#: Why a replica is left out. Errors of the domain are answers.
_FAILURES: Final = (_Behind, ConnectionLost, StorageError)


class NoReplica(Exception):
    """No replica can answer."""


async def _do_nothing(tables: PostgresTables) -> None:
    pass


class Replica:
    """One replica, and whether it is used."""

    def __init__(self, where: PostgresAddress) -> None:
        #: For messages. Contains no password.
        self.url = where.display_url
        self.state: ReplicaState = "failing"
        #: The number of changes that it lacked when it was last asked.
        self.lag = 0
        self._readers = ReaderConnections(where)
        self._recovery: asyncio.Task[None] | None = None
        self._is_closed = False

    def can_answer(self, viewer: str | None) -> bool:
        return self.state == "used" and not self._readers.is_exhausted(viewer)

    async def read(
        self, work: Callable[[PostgresTables], Awaitable[T]], viewer: str | None, ends: LogEnds
    ) -> T:
        """Run `work` in a snapshot with these ends. Raises `NoReplica` if that is not possible."""
        try:
            return await self._attempt(work, viewer, ends)
        except _FAILURES as error:
            self.leave_out(error, ends)
            raise NoReplica from None

    async def _attempt(
        self, work: Callable[[PostgresTables], Awaitable[T]], viewer: str | None, ends: LogEnds
    ) -> T:
        async def work_if_current(tables: PostgresTables) -> T | _Behind:
            row: Any = await tables.connection.fetchrow(_LOG_ENDS_ON_REPLICA, session_setting(viewer))
            *found, is_replica, _ = row
            self.lag = max(ends.seq - found[0], 0)
            # A server that was promoted follows the primary no longer, and may have other changes.
            if is_replica and LogEnds(*found).contain(ends):
                return await work(tables)
            return _Behind()

        async def run(tables: PostgresTables) -> T | _Behind:
            # The connections of the operator have no other viewer.
            statements = () if viewer is None else (_AS_OPERATOR,)
            return await run_in_snapshot(tables, work_if_current, *statements)

        result = await self._readers.run(run, viewer)
        if isinstance(result, _Behind):
            raise result
        return result

    def leave_out(self, error: Exception | None, ends: LogEnds) -> None:
        """Do not use it until it answers and has caught up with `ends`."""
        self.state = "behind" if isinstance(error, _Behind) else "failing"
        if not self._is_closed and (self._recovery is None or self._recovery.done()):
            self._recovery = asyncio.get_running_loop().create_task(self._recover(ends))

    async def _recover(self, ends: LogEnds) -> None:
        pause = _FIRST_PAUSE
        while self.state != "used":
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            try:
                await self._attempt(_do_nothing, None, ends)
                self.state = "used"
            except _FAILURES as error:
                self.state = "behind" if isinstance(error, _Behind) else "failing"

    async def close(self) -> None:
        self._is_closed = True
        if self._recovery is not None:
            self._recovery.cancel()
            await asyncio.gather(self._recovery, return_exceptions=True)
        await self._readers.close()


class ReadReplicas:
    """The replicas of a primary, which take turns."""

    def __init__(
        self, addresses: Sequence[PostgresAddress], read_ends: Callable[[], Awaitable[LogEnds]]
    ) -> None:
        """`read_ends`: reads the ends on the primary."""
        self.replicas = [Replica(where) for where in addresses]
        self._read_ends = read_ends
        self._turn = 0

    def start(self, ends: LogEnds) -> None:
        """Begin to use them as soon as they answer."""
        for replica in self.replicas:
            replica.leave_out(None, ends)

    async def read(self, work: Callable[[PostgresTables], Awaitable[T]], viewer: str | None) -> T:
        """Run `work` in a snapshot of a replica. Raises `NoReplica` if none can answer."""
        self._turn += 1
        first = self._turn % max(len(self.replicas), 1)
        usable = [
            replica for replica in self.replicas[first:] + self.replicas[:first] if replica.can_answer(viewer)
        ]
        if not usable:
            raise NoReplica
        ends = await self._read_ends()
        for replica in usable:
            try:
                return await replica.read(work, viewer, ends)
            except NoReplica:
                continue
        raise NoReplica

    def statuses(self) -> list[ReplicaStatus]:
        return [
            ReplicaStatus(replica.url, is_used=replica.state == "used", lag=replica.lag)
            for replica in self.replicas
        ]

    async def close(self) -> None:
        await asyncio.gather(*(replica.close() for replica in self.replicas))
