"""Coroutines that start running immediately instead of on the next event loop iteration.

Most handlers never wait, and have finished when these functions return. Others go on in a task, in which they
have run from their start, as timeouts, task groups and database drivers expect.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from types import coroutine
from typing import Any, TypeVar

from dittybag.protocol.lazy_asyncio import asyncio

T = TypeVar("T")


@coroutine
def resume(running: Coroutine[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """Await a coroutine that the current task has run until its first wait. `waits_for`: what it yielded."""
    try:
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001  # thrown into the coroutine
                waits_for = running.throw(error)
            else:
                waits_for = running.send(sent)
    except StopIteration as ended:
        value: T = ended.value
        return value


if sys.version_info >= (3, 12):

    def start(coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
        """Run `coroutine` in a task until it waits or ends. `loop` is the running event loop."""
        return asyncio.Task(coroutine, loop=loop, eager_start=True)

else:
    #: The first step of a new task, and its context.
    _captured: list[tuple[Callable[[], object], Context]] = []

    def _capture(step: Callable[[], object], *, context: Context) -> None:
        _captured.append((step, context))

    def start(coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
        """Run `coroutine` in a task until it waits or ends. `loop` is the running event loop."""
        # Python 3.11 has no eager tasks: a new task schedules its first step with `call_soon`. Replace
        # `call_soon` to capture that step and run it now. uvloop does not allow this.
        try:
            loop.call_soon = _capture  # type: ignore[method-assign, assignment]
        except AttributeError:
            return loop.create_task(coroutine)
        try:
            # Without a name, the task would format one.
            task = asyncio.Task(coroutine, loop=loop, name="request")
        finally:
            del loop.call_soon
        step, context = _captured.pop()
        outer = asyncio.current_task(loop)
        if outer is None:
            context.run(step)
            return task
        asyncio.tasks._leave_task(loop, outer)  # noqa: SLF001  # the hooks for task implementations
        try:
            context.run(step)
        finally:
            asyncio.tasks._enter_task(loop, outer)  # noqa: SLF001
        return task
