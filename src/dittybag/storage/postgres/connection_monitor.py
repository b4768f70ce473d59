"""A monitor that ends connections which no longer reach the server, although nothing has closed them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from time import monotonic
from typing import Final

from dittybag.domain.errors import StorageError
from dittybag.storage.postgres.postgres_connections import (
    DRIVER_ERRORS,
    ConnectionLost,
    PostgresAddress,
    PostgresConnection,
    connect,
)

#: A query that takes longer than this is checked, and then again in the same interval.
SUSPICION_SECONDS: Final = 1.0

#: How long the server may take to answer on another connection.
PROBE_SECONDS: Final = 1.0

#: How long an answer may be under way.
_ANSWER_SECONDS: Final = 0.1


class ConnectionMonitor:
    """Looks at the connections in use. A long query goes on as long as the server still runs it."""

    def __init__(
        self,
        where: PostgresAddress,
        connections: Callable[[], Sequence[PostgresConnection]],
        when_dead: Callable[[], None],
    ) -> None:
        """`connections`: those in use. `when_dead`: called after some of them were ended."""
        self._where = where
        self._connections = connections
        self._when_dead = when_dead
        self._timer: asyncio.TimerHandle | None = None
        self._check: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look at the connections soon, and until none is in use."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SUSPICION_SECONDS / 4, self._look)

    def _look(self) -> None:
        self._timer = None
        connections = self._connections()
        if not connections:
            return
        self.start()
        suspicious = {
            connection: since
            for connection in connections
            if (since := connection.waiting_since) is not None and monotonic() - since >= SUSPICION_SECONDS
        }
        if suspicious and (self._check is None or self._check.done()):
            self._check = asyncio.get_running_loop().create_task(self._end_dead(suspicious))

    async def _end_dead(self, suspicious: dict[PostgresConnection, float]) -> None:
        alive = await self._find_alive(suspicious)
        dead = [
            connection
            for connection, since in suspicious.items()
            # It may wait for another query by now.
            if connection not in alive and connection.waiting_since == since
        ]
        for connection in dead:
            connection.terminate()
        if dead:
            self._when_dead()
        else:
            await asyncio.sleep(SUSPICION_SECONDS)

    async def _find_alive(self, suspicious: Collection[PostgresConnection]) -> Collection[PostgresConnection]:
        try:
            probe = await connect(self._where, writable=False, seconds=PROBE_SECONDS)
        except ConnectionLost as error:
            return suspicious if error.is_refusal else ()
        except StorageError:
            # The server has answered.
            return suspicious
        alive: set[PostgresConnection] = set()
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await _add_running(alive, suspicious, probe)
                if len(alive) < len(suspicious):
                    # An answer may be under way, or the driver between two steps of one query.
                    await asyncio.sleep(_ANSWER_SECONDS)
                    await _add_running(alive, suspicious, probe)
        except (TimeoutError, *DRIVER_ERRORS):
            # Those that were not found until now are dead.
            pass
        finally:
            probe.terminate()
        return alive

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._check is not None:
            self._check.cancel()
            await asyncio.gather(self._check, return_exceptions=True)


async def _add_running(
    alive: set[PostgresConnection], suspicious: Iterable[PostgresConnection], probe: PostgresConnection
) -> None:
    """Add the connections whose query the server runs. Those in a transaction first: others may wait."""
    for connection in sorted(suspicious, key=lambda one: not one.is_in_transaction()):
        if await connection.is_running_on(probe):
            alive.add(connection)
