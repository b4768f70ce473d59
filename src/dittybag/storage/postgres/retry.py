"""Trying again while a server is away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from dittybag.domain.errors import StorageUnreachable
from dittybag.storage.postgres.connections import RETRY_SECONDS, ConnectionLost

T = TypeVar("T")

_LONGEST_PAUSE: Final = 0.2


class Backoff:
    """How long to keep trying, and how long to wait in between."""

    def __init__(self, since: float | None = None) -> None:
        """`since`: when, on the clock of the event loop, the waiting began."""
        self._loop = asyncio.get_running_loop()
        self._end = (self._loop.time() if since is None else since) + RETRY_SECONDS
        self._pause = 0.0

    @property
    def exhausted(self) -> bool:
        return self._loop.time() >= self._end

    async def wait(self) -> None:
        """Wait a little. Not at first: the connection may just have been closed while nobody used it."""
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause + 0.005, _LONGEST_PAUSE)


async def retry_until_connected(attempt: Callable[[], Awaitable[T]], where: str) -> T:
    """What an attempt gives that may be repeated. Raises `StorageUnreachable` after a while."""
    backoff = Backoff()
    while True:
        try:
            return await attempt()
        except ConnectionLost as error:
            if backoff.exhausted:
                raise StorageUnreachable(where, str(error)) from error
        await backoff.wait()
