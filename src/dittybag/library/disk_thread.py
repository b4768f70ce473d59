"""A thread in which the disk is read: a slow disk delays those who need it, and nobody else."""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")


class DiskThread:
    """Runs functions one after the other, in a thread that is started for the first of them."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], T]) -> T:
        if self._thread is None:
            from concurrent.futures import ThreadPoolExecutor

            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="dittybag-disk")
        return await get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """Forget what has not begun."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
