"""Budgets of requests that this server leases from buckets that it shares with other servers.

A server takes a few requests of a token in advance, in the background and for all tokens in one call, so that
a request does not wait for the database, except in a burst. See docs/decisions/0033.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from typing import Final

from dittybag.domain.ports import RequestBuckets
from dittybag.domain.rate_limits import RateLimit, RequestBucket, TakenRequests
from dittybag.protocol.lazy_asyncio import asyncio

_log = logging.getLogger("dittybag")

#: A lease holds the requests of this time at the full rate.
LEASE_SECONDS: Final = 0.2
#: Requests that were leased and not used are forgotten after this time.
UNUSED_SECONDS: Final = 5.0
#: A bucket that was found empty is not asked again for this time.
EMPTY_SECONDS: Final = 0.05
#: How long the database may take to answer, and to be connected to.
ANSWER_SECONDS: Final = 1.0
#: How long a server counts alone after the database has not answered.
ALONE_SECONDS: Final = 1.0


class LeasedBudget:
    """The requests of one token that this server has leased. See `request_budgets.RequestBudget`."""

    __slots__ = (
        "_answer",
        "_empty_until",
        "_ends_at",
        "_is_asking",
        "_left",
        "_limiter",
        "_waiting",
        "own",
        "token",
    )

    def __init__(self, token: bytes, limiter: LeasingLimiter) -> None:
        self.token = token
        #: The bucket that is used instead while the database does not answer.
        self.own = RequestBucket(limiter.limit)
        self._limiter = limiter
        #: It may be -1: the first request does not wait for a lease, but is counted with the next one.
        self._left = 0
        self._ends_at = math.inf
        self._empty_until = 0.0
        self._is_asking = False
        self._waiting = 0
        self._answer: asyncio.Future[None] | None = None

    def spend(self, now: float) -> bool:
        left = self._left
        if now >= self._ends_at:
            left = self._left = min(left, 0)
            self._ends_at = math.inf
        if left < 0:
            return False
        self._left = left - 1
        if left <= self._limiter.low and not self._is_asking and now >= self._empty_until:
            self._ask()
        return True

    def _ask(self) -> None:
        if not self._is_asking:
            self._is_asking = True
            self._limiter.ask(self)

    async def refill(self) -> bool:
        if time.monotonic() < self._empty_until:
            return False
        if self._answer is None:
            self._answer = asyncio.get_running_loop().create_future()
        self._waiting += 1
        self._ask()
        try:
            # Others wait for the same answer, even if this request is cancelled.
            await asyncio.shield(self._answer)
        finally:
            self._waiting -= 1
        return True

    def wait(self, now: float) -> float:
        return max(0.0, self._empty_until - now)

    @property
    def wanted(self) -> int:
        return self._limiter.lease + self._waiting - self._left

    def add(self, taken: TakenRequests, wanted: int, now: float) -> None:
        """Add what was taken from the bucket."""
        self._is_asking = False
        self._left += taken.count
        self._ends_at = now + UNUSED_SECONDS
        if taken.count < wanted:
            self._empty_until = now + max(taken.wait, self._limiter.pause)
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.set_result(None)


class LeasingLimiter:
    """Takes leases for all tokens of this server. See `request_budgets.RequestLimiter`."""

    def __init__(self, limit: RateLimit, buckets: RequestBuckets) -> None:
        self.limit = limit
        self._buckets = buckets
        #: The size of a lease, and how few requests are left of it when the next one is taken.
        self.lease = max(1, min(int(limit.per_second * LEASE_SECONDS), limit.burst // 4))
        self.low = self.lease // 2
        #: At most half of the time in which a bucket fills, so that it does not overflow.
        self.pause = min(EMPTY_SECONDS, limit.burst / limit.per_second / 2)
        self._asking: list[LeasedBudget] = []
        self._task: asyncio.Task[None] | None = None
        self._alone_until = 0.0

    def new_budget(self, token: bytes) -> LeasedBudget:
        return LeasedBudget(token, self)

    def ask(self, budget: LeasedBudget) -> None:
        """Take a lease for a budget in the background."""
        self._asking.append(budget)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._take_leases())

    async def _take_leases(self) -> None:
        while self._asking:
            budgets, self._asking = self._asking, []
            wanted = {budget.token: budget.wanted for budget in budgets}
            taken = await self._take(wanted)
            now = time.monotonic()
            for budget in budgets:
                count = wanted[budget.token]
                found = budget.own.take(count, now) if taken is None else taken[budget.token]
                budget.add(found, count, now)

    async def _take(self, wanted: Mapping[bytes, int]) -> Mapping[bytes, TakenRequests] | None:
        """Take requests from the shared buckets. Returns `None` if this server has to count alone."""
        if time.monotonic() < self._alone_until:
            return None
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                taken = await self._buckets.take(wanted, self.limit)
        except Exception as error:  # noqa: BLE001  # every waiting request must get an answer
            if not self._alone_until:
                reason = str(error) or "it does not answer"
                _log.warning("the database cannot count requests, so this server counts alone: %s", reason)
            self._alone_until = time.monotonic() + ALONE_SECONDS
            return None
        self._alone_until = 0.0
        return taken

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
