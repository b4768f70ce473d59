"""A thread for disk access, so that a slow disk does not block the event loop."""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")


class DiskThread:
    """Runs functions one after the other in a thread, which is started on first use."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None

    async def run(self, function: Callable[[], T]) -> T:
        if self._thread is None:
            from concurrent.futures import ThreadPoolExecutor

            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="dittybag-disk")
        return await get_running_loop().run_in_executor(self._thread, function)

    def close(self) -> None:
        """Cancel functions that have not started."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
