"""How many requests a token may make on this server: without a limit, or by a bucket of this process."""

from __future__ import annotations

from typing import Protocol

from dittybag.domain.rate_limits import RateLimit, RequestBucket


class RequestBudget(Protocol):
    """The requests that one token may make now."""

    def spend(self, now: float) -> bool:
        """Use one request at a monotonic time. Returns whether there was one."""
        ...

    async def refill(self) -> bool:
        """Wait for more requests after there was none. Returns whether it is worth trying again."""
        ...

    def wait(self, now: float) -> float:
        """Return how long the client should wait before its next request, in seconds."""
        ...


class RequestLimiter(Protocol):
    """The rate limit of a server."""

    @property
    def limit(self) -> RateLimit | None: ...

    def new_budget(self, token: bytes) -> RequestBudget:
        """Return the budget of a token, given its key."""
        ...

    async def close(self) -> None: ...


class UnlimitedBudget:
    """See `RequestBudget`."""

    def spend(self, now: float) -> bool:
        return True

    async def refill(self) -> bool:
        return True

    def wait(self, now: float) -> float:
        return 0.0


class OwnBudget:
    """The bucket of this process. See `RequestBudget`."""

    __slots__ = ("spend", "wait")

    def __init__(self, limit: RateLimit) -> None:
        bucket = RequestBucket(limit)
        self.spend = bucket.take_one
        self.wait = bucket.wait

    async def refill(self) -> bool:
        return False


class OwnLimiter:
    """Counts the requests of this process. See `RequestLimiter`."""

    def __init__(self, limit: RateLimit | None) -> None:
        self.limit = limit

    def new_budget(self, token: bytes) -> RequestBudget:
        return UnlimitedBudget() if self.limit is None else OwnBudget(self.limit)

    async def close(self) -> None:
        """There is nothing to close."""
