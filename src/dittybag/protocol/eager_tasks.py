"""Coroutines that start running immediately instead of on the next event loop iteration.

Most handlers never wait. With `start`, such a handler has finished when the call returns, and still runs
inside a task, as timeouts and task groups expect. A coroutine that uses neither before it first waits can use
the cheaper `start_without_task`.
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
    """Run a coroutine until it waits or ends. Returns a task for the rest, or `None` if it has ended."""
    try:
        waits_for = running.send(None)
    except StopIteration:
        return None
    return loop.create_task(resume(running, waits_for))


def resume(running: Coroutine[Any, Any, None], waits_for: Any) -> Coroutine[Any, Any, None]:
    """Continue a started coroutine that is waiting for `waits_for`."""
    steps: Any = _continue(running, waits_for)
    # Enter the generator now: if a task is cancelled before its first step, it discards a generator that has
    # not been entered, and the coroutine would never end.
    next(steps)
    return steps  # type: ignore[no-any-return]


@coroutine
def _continue(running: Coroutine[Any, Any, None], first: Any) -> Generator[Any, Any, None]:
    step: Callable[[], Any] = lambda: first  # noqa: E731  # replaced below
    try:
        yield
    except BaseException as error:  # noqa: BLE001  # thrown into the coroutine
        step = partial(running.throw, error)
    while True:
        try:
            waits_for = step()
        except StopIteration:
            return
        try:
            value = yield waits_for
        except BaseException as error:  # noqa: BLE001  # thrown into the coroutine
            step = partial(running.throw, error)
        else:
            step = partial(running.send, value)


if sys.version_info >= (3, 12):

    def start(coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
        """Run `coroutine` in a task until it waits or ends. `loop` is the running event loop."""
        return asyncio.Task(coroutine, loop=loop, eager_start=True)

else:

    def start(coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
        """Run `coroutine` in a task until it waits or ends. `loop` is the running event loop."""
        # Python 3.11 has no eager tasks: a new task schedules its first step with `call_soon`. Replace
        # `call_soon` to capture that step and run it now. A loop without `__dict__` does not allow this.
        context = copy_context()
        if not hasattr(loop, "__dict__"):
            return loop.create_task(coroutine, context=context)
        steps: list[Callable[[], object]] = []

        def capture(step: Callable[[], object], *, context: Context | None = None) -> None:
            steps.append(step)

        loop.call_soon = capture  # type: ignore[method-assign, assignment]
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
