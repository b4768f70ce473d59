"""Waiting for a ready task without polling: a waiter sleeps until a task changes or a claim lapses."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from dittybag.domain.changes import ChangeNotification
from dittybag.domain.claims import MICROSECONDS
from dittybag.domain.errors import DittybagError
from dittybag.domain.ports import Store
from dittybag.services.caller import Caller
from dittybag.services.task_queue import ClaimedTask, ClaimRequest, TaskQueueService

T = TypeVar("T", bound=ClaimedTask | None)

#: In seconds: progress is reported this often.
_REPORT_INTERVAL: Final = 5.0
#: In seconds: added to the time of a lapse, so that it is over after the sleep.
_LAPSE_MARGIN: Final = 0.01


class TaskWaiting:
    """Lets callers wait until they can claim a task."""

    def __init__(self, store: Store, queue: TaskQueueService) -> None:
        self._store = store
        self._queue = queue
        self._waiters: set[asyncio.Event] = set()
        self._is_subscribed = False

    async def claim_next(
        self,
        caller: Caller,
        request: ClaimRequest,
        wait_seconds: float = 0,
        report: Callable[[float], None] | None = None,
    ) -> ClaimedTask | None:
        """Claim the best ready task, if necessary after some time; `None` if none becomes ready in time.

        `report` is called from time to time with the seconds that have passed. If the call is cancelled,
        nothing stays claimed.
        """
        if wait_seconds <= 0:
            return await self._claim(caller, request)
        with self.watching() as woken:
            return await self._wait(caller, request, wait_seconds, report, woken)

    async def claim(self, caller: Caller, id: int, request: ClaimRequest) -> ClaimedTask:
        """Claim a task; see `claim_task`. If the call is cancelled, it does not stay claimed."""
        return await self._unless_cancelled(caller, self._queue.claim(caller, id, request))

    @contextmanager
    def watching(self) -> Iterator[asyncio.Event]:
        """Yield an event that is set whenever a task or a project changes, also by other processes."""
        if not self._is_subscribed:
            self._is_subscribed = True
            self._store.subscribe(self._on_changes)
        woken = asyncio.Event()
        self._waiters.add(woken)
        try:
            yield woken
        finally:
            self._waiters.discard(woken)

    def _on_changes(self, changes: Sequence[ChangeNotification]) -> None:
        if any(change.kind in ("task", "project") for change in changes):
            for woken in self._waiters:
                woken.set()

    async def _wait(
        self,
        caller: Caller,
        request: ClaimRequest,
        wait_seconds: float,
        report: Callable[[float], None] | None,
        woken: asyncio.Event,
    ) -> ClaimedTask | None:
        clock = asyncio.get_running_loop().time
        start = clock()
        while True:
            # Before looking, so that no change and no lapse is missed in between.
            woken.clear()
            lapse = await self._next_lapse(caller)
            if await self._queue.is_any_ready(caller, request):
                claimed = await self._claim(caller, request)
                if claimed is not None:
                    return claimed
                # Somebody else was faster.
                continue
            passed = clock() - start
            if passed >= wait_seconds:
                return None
            if report is not None:
                report(passed)
            # Until a task changes, the next claim lapses, or it is time to report.
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(start + wait_seconds, clock() + _REPORT_INTERVAL, lapse)):
                    await woken.wait()

    async def _next_lapse(self, caller: Caller) -> float:
        """Return when the next claim lapses, by the clock of the loop."""
        found = await self._queue.next_lapse(caller)
        if found is None:
            return math.inf
        return asyncio.get_running_loop().time() + found / MICROSECONDS + _LAPSE_MARGIN

    async def _claim(self, caller: Caller, request: ClaimRequest) -> ClaimedTask | None:
        """Claim the best ready task, unless this is cancelled."""
        return await self._unless_cancelled(caller, self._queue.claim_next(caller, request))

    async def _unless_cancelled(self, caller: Caller, claim: Coroutine[Any, Any, T]) -> T:
        """Claim a task. If this is cancelled, release it."""
        claiming = asyncio.ensure_future(claim)
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            await _complete(self._release(caller, claiming))
            raise

    async def _release(self, caller: Caller, claiming: asyncio.Future[T]) -> None:
        # It may have failed, or somebody has taken the task away already.
        with suppress(DittybagError):
            claimed = await claiming
            if claimed is not None:
                await self._queue.release(caller, claimed.task.id, fence=claimed.claim.fence)


async def _complete(work: Coroutine[Any, Any, None]) -> None:
    """Run something to its end, even if the caller is cancelled again meanwhile."""
    running = asyncio.ensure_future(work)
    while not running.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(running)
