"""Knows how long a server has had no request, for servers that exit by themselves."""

from __future__ import annotations

import asyncio
import time

from dittybag.http.http_request import HttpRequest


class IdleTimer:
    """A middleware that counts running requests. An open event stream is a running request."""

    def __init__(self, seconds: float) -> None:
        """`seconds`: how long a server without requests goes on."""
        self._seconds = seconds
        self._running = 0
        self._since = time.monotonic()

    def __call__(self, request: HttpRequest) -> None:
        self._running += 1

    def end(self, request: HttpRequest) -> None:
        """Count the end of a request."""
        self._running -= 1
        self._since = time.monotonic()

    async def wait(self) -> None:
        """Wait until there was no request for the given time."""
        left = self._seconds
        while left > 0:
            await asyncio.sleep(left)
            left = self._seconds - (0.0 if self._running else time.monotonic() - self._since)
