"""Coroutines that take their first step at once.

Most handlers never wait. Started here, such a handler has answered by the time `start` returns, without a
turn of the event loop, and yet runs inside a task, as timeouts and task groups expect. What uses neither of
them before it first waits can do without a task until then: `start_without_task` is for that, and costs less.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from functools import partial
from types import coroutine
from typing import Any, TypeVar

from dittybag.protocol.lazy_tls import asyncio

T = TypeVar("T")


def start_without_task(
    running: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop
) -> asyncio.Task[None] | None:
    """Run a coroutine until it waits or ends; a task for the rest of it, if there is any."""
    try:
        waits_for = running.send(None)
    except StopIteration:
        return None
    return loop.create_task(resumed(running, waits_for))


@coroutine
def resumed(running: Coroutine[Any, Any, None], waits_for: Any) -> Generator[Any, Any, None]:
    """The rest of a coroutine that has begun, and now waits for something."""
    while True:
        try:
            value = yield waits_for
        except BaseException as error:  # noqa: BLE001  # it is for the coroutine
            step = partial(running.throw, error)
        else:
            step = partial(running.send, value)
        try:
            waits_for = step()
        except StopIteration:
            return


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
