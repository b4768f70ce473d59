"""A watch that ends connections which no longer reach the server, although nothing has closed them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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

#: A query that takes longer than this is checked, and then again after pauses that grow up to the maximum.
SUSPICION_SECONDS: Final = 1.0
_LONGEST_PAUSE: Final = 8.0

#: How long the server may take to answer on another connection.
PROBE_SECONDS: Final = 1.0

#: How long an answer may be under way.
_ANSWER_SECONDS: Final = 0.1


class ConnectionWatch:
    """Watches a connection until `stop`. A long query goes on as long as the server still runs it."""

    def __init__(
        self, where: PostgresAddress, connection: PostgresConnection, when_dead: Callable[[], None]
    ) -> None:
        """`when_dead` is called when the connection was ended."""
        self._where = where
        self._connection = connection
        self._when_dead = when_dead
        self._check: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(SUSPICION_SECONDS, self._begin_checks)

    def stop(self) -> None:
        self._timer.cancel()
        if self._check is not None:
            self._check.cancel()

    def _begin_checks(self) -> None:
        self._check = asyncio.get_running_loop().create_task(self._check_repeatedly())

    async def _check_repeatedly(self) -> None:
        pause = SUSPICION_SECONDS
        while True:
            since = self._connection.waiting_since
            is_suspicious = since is not None and monotonic() - since >= SUSPICION_SECONDS
            if is_suspicious and not await self._is_alive() and self._connection.waiting_since == since:
                self._connection.terminate()
                self._when_dead()
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _is_alive(self) -> bool:
        try:
            probe = await connect(self._where, writable=False, seconds=PROBE_SECONDS)
        except ConnectionLost as error:
            return error.is_refusal
        except StorageError:
            # The server has answered.
            return True
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                if await self._connection.is_running_on(probe):
                    return True
                # The answer may be under way, or the driver between two steps of one query.
                await asyncio.sleep(_ANSWER_SECONDS)
                return await self._connection.is_running_on(probe)
        except (TimeoutError, *DRIVER_ERRORS):
            return False
        finally:
            probe.terminate()
