"""Tasks that take their first step at once.

Most handlers never wait. Started here, such a handler has answered by the time `start` returns, without a
turn of the event loop, and yet runs inside a task, as timeouts and task groups expect.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, TypeVar

from satchel.protocol.aio import asyncio

T = TypeVar("T")

if sys.version_info >= (3, 12):

    def start(coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
        """Run `coroutine` until it waits or ends. `loop` is the running one."""
        return asyncio.Task(coroutine, loop=loop, eager_start=True)

else:

    def start(coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
        """Run `coroutine` until it waits or ends. `loop` is the running one."""
        # A new task asks its loop for its first step soon. Python 3.12 can do it now; before that, we catch
        # the step on its way into the queue, which needs a loop that lets us.
        context = copy_context()
        if not hasattr(loop, "__dict__"):
            return loop.create_task(coroutine, context=context)
        steps: list[Callable[[], object]] = []

        def hold(step: Callable[[], object], *, context: Context | None = None) -> None:
            steps.append(step)

        loop.call_soon = hold  # type: ignore[method-assign, assignment]
        try:
            task = asyncio.Task(coroutine, loop=loop, context=context)
        finally:
            del loop.call_soon
        outer = asyncio.current_task(loop)
        if outer is not None:
            asyncio.tasks._leave_task(loop, outer)  # noqa: SLF001  # the hooks for task implementations
        try:
            for step in steps:
                context.run(step)
        finally:
            if outer is not None:
                asyncio.tasks._enter_task(loop, outer)  # noqa: SLF001
        return task
