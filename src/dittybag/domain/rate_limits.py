"""The request rate that a token is allowed, as a bucket that is refilled at a constant rate."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

#: The periods of a rate in seconds, by their letter.
PERIODS: Final = {"s": 1, "m": 60, "h": 3600}
_PERIOD_NAMES: Final = {1: "second", 60: "minute", 3600: "hour"}

#: If no burst is chosen, it is the requests of this time,
BURST_SECONDS: Final = 4
#: and at least this many: a client makes several at its start.
MIN_BURST: Final = 20


class RateLimit(Struct, frozen=True):
    """The maximum rate of requests."""

    requests: int = 50
    #: The period of these requests.
    seconds: int = 1
    #: The size of the bucket: the number of requests allowed at once.
    burst: int = 200

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds

    def __str__(self) -> str:
        return f"{self.requests} per {_PERIOD_NAMES[self.seconds]}, with bursts of {self.burst}"


def default_burst(requests: int, seconds: int) -> int:
    """Return the burst of a limit for which none was chosen."""
    return max(BURST_SECONDS * requests // seconds, MIN_BURST)


class RequestBucket:
    """A bucket of requests in memory. It is full at first."""

    __slots__ = ("_full_at", "_limit_seconds", "_request_seconds")

    def __init__(self, limit: RateLimit) -> None:
        self._request_seconds = 1 / limit.per_second
        #: How long it takes to fill an empty bucket.
        self._limit_seconds = limit.burst * self._request_seconds
        #: When the bucket will be full. This one number is its whole state.
        self._full_at = 0.0

    def take_one(self, now: float) -> bool:
        """Take one request, if there is one."""
        full_at = max(now, self._full_at) + self._request_seconds
        if full_at - now > self._limit_seconds:
            return False
        self._full_at = full_at
        return True

    def wait(self, now: float) -> float:
        """Return how long it takes until there is a request, in seconds."""
        return max(0.0, self._full_at + self._request_seconds - self._limit_seconds - now)
