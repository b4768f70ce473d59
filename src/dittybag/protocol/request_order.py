"""The order of one client's requests: which run at the same time, and which wait for earlier ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextvars import Context as Variables
from contextvars import copy_context
from typing import Final

from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.request_context import Context

#: Maximum number of reads of one client that run at the same time: their responses may be large.
MAX_READS: Final = 16
#: Maximum number of writes of one client that run at the same time: the store may commit them together.
MAX_WRITES: Final = 128


class RequestOrder:
    """Makes pipelined requests get the same results as requests that are sent one at a time.

    A read waits for all earlier writes, and a write for all earlier reads. Reads run at the same time. So do
    writes, each as soon as the place of the previous one is fixed (see `Context.fix_order`). Requests that
    neither read nor write never wait.
    """

    def __init__(self, start: Callable[[Context], None]) -> None:
        self._start = start
        self._waiting: deque[tuple[Context, Variables]] = deque()
        self._reads = 0
        self._writes = 0
        #: The last write that was started, while it runs.
        self._last_write: Context | None = None
        self._wakeup_is_due = False
        #: Set while the client does not read its responses: no waiting request starts.
        self.paused = False

    def __len__(self) -> int:
        """Return the number of waiting requests."""
        return len(self._waiting)

    def must_wait(self, ctx: Context) -> bool:
        """Return whether a request must wait. If so, it is started later."""
        if ctx.effect is None or (not self._waiting and not self.paused and self._may_start(ctx)):
            return False
        # The request must not run with the context variables of the one that it waited for.
        self._waiting.append((ctx, copy_context()))
        return True

    def begin(self, ctx: Context) -> None:
        """Count a request as running."""
        ctx.is_ordered = True
        if ctx.effect == "writes":
            self._writes += 1
            self._last_write = ctx
        else:
            self._reads += 1

    def end(self, ctx: Context) -> None:
        """Count a request as ended, and start the requests that waited for it."""
        if not ctx.is_ordered:
            return
        ctx.is_ordered = False
        if ctx.effect == "writes":
            self._writes -= 1
            if self._last_write is ctx:
                self._last_write = None
        else:
            self._reads -= 1
        self.wake()

    def wake(self) -> None:
        """Start the requests that need not wait any longer, soon and outside of the current task."""
        if self._waiting and not self._wakeup_is_due:
            self._wakeup_is_due = True
            asyncio.get_running_loop().call_soon(self._start_waiting)

    def _start_waiting(self) -> None:
        self._wakeup_is_due = False
        while self._waiting and not self.paused:
            ctx, variables = self._waiting[0]
            if not ctx.is_finished and not self._may_start(ctx):
                return
            self._waiting.popleft()
            if not ctx.is_finished:
                variables.run(self._start, ctx)

    def _may_start(self, ctx: Context) -> bool:
        if ctx.effect == "reads":
            return self._writes == 0 and self._reads < MAX_READS
        is_next = self._last_write is None or self._last_write.has_fixed_order
        return is_next and self._reads == 0 and self._writes < MAX_WRITES
