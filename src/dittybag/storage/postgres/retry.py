"""Retries with back-off while the server is unreachable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from dittybag.domain.errors import StorageUnreachable
from dittybag.storage.postgres.postgres_connections import RETRY_SECONDS, ConnectionLost

T = TypeVar("T")

_LONGEST_PAUSE: Final = 0.2


class Backoff:
    """The deadline of retries, and growing pauses between them."""

    def __init__(self, since: float | None = None) -> None:
        """`since`: when the first attempt began, on the clock of the event loop."""
        self._loop = asyncio.get_running_loop()
        self._end = (self._loop.time() if since is None else since) + RETRY_SECONDS
        self._pause = 0.0

    @property
    def exhausted(self) -> bool:
        return self._loop.time() >= self._end

    async def wait(self) -> None:
        """Pause before the next attempt, but not before the first retry: it often succeeds."""
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause + 0.005, _LONGEST_PAUSE)


async def retry_until_connected(attempt: Callable[[], Awaitable[T]], where: str) -> T:
    """Run `attempt` until it succeeds. Raises `StorageUnreachable` after `RETRY_SECONDS`."""
    backoff = Backoff()
    while True:
        try:
            return await attempt()
        except ConnectionLost as error:
            if backoff.exhausted:
                raise StorageUnreachable(where, str(error)) from error
        await backoff.wait()
