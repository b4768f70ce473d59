"""Coroutines that start running immediately instead of on the next event loop iteration.

Most handlers never wait, and have finished when these functions return. Others go on in a task, in which they
have run from their start, as timeouts, task groups and database drivers expect.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from types import coroutine
from typing import Any, TypeVar

from dittybag.protocol.lazy_tls import asyncio

T = TypeVar("T")


@coroutine
def run_here(running: Coroutine[Any, Any, T], on_wait: Callable[[], object]) -> Generator[Any, Any, T]:
    """Await a coroutine in the current task. `on_wait` is called when it has to wait for the first time."""
    try:
        waits_for = running.send(None)
        on_wait()
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
