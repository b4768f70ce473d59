"""Follows the disk: has libraries read again when their files change, and says so, once for many changes."""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop, Event, TimerHandle, get_running_loop, timeout
from collections.abc import Callable, Sequence
from typing import Final

from dittybag.library.indexer import LibraryIndexer
from dittybag.library.watcher import FolderWatcher

#: Listeners are told at most this often.
_TELLING_SECONDS: Final = 0.55
#: A burst may have been more than the system could tell of: look again when it is over.
_SETTLING_SECONDS: Final = 1.0
#: After so many changes at once, look at everything.
_MANY_PATHS: Final = 2_000
#: What was read is kept for the next start when nothing has happened for so long.
_KEEPING_SECONDS: Final = 2.0

_log = logging.getLogger("dittybag.library")


class LibraryRefresher:
    """Keeps the catalogue of a keeper up to date."""

    def __init__(
        self, keeper: LibraryIndexer, changed: Callable[[], object], tell: Callable[[], object]
    ) -> None:
        """`changed` is called at every change; `tell` soon after it, and not too often."""
        self._keeper = keeper
        self._changed = changed
        self._listener = tell
        self._loop = get_running_loop()
        self._watcher = FolderWatcher(lambda paths: _soon(self._loop, lambda: self._note(paths)))
        self._wake = Event()
        #: Places to look at again; nothing for all of them.
        self._touched: set[str] | None = set()
        #: Those that have been looked at, but not yet for the last time.
        self._unsettled: set[str] | None = set()
        self._settling: TimerHandle | None = None
        self._told_at = 0.0
        self._telling: TimerHandle | None = None
        self._closed = False

    async def run(self) -> None:
        """Follow, until this is cancelled. The watcher begins with having everything looked at."""
        # Only a complete look shows which folders there are to watch.
        self._note(None)
        while True:
            await self._wake.wait()
            self._wake.clear()
            touched, self._touched = self._touched, set()
            try:
                if await self._keeper.refresh(touched):
                    self._changed()
                    self.tell_soon()
                self._watcher.watch(self._keeper.folders(), self._keeper.places.tops())
                await self._calm()
            except Exception:  # noqa: BLE001  # the edge of this task: there is nobody to raise it to
                _log.exception("the libraries could not be read again")

    async def _calm(self) -> None:
        """Wait for more to do; if there is nothing for a while, keep what is known for the next start."""
        try:
            async with timeout(_KEEPING_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            await self._keeper.keep()

    def close(self) -> None:
        """Tell nothing any more."""
        self._closed = True
        self._watcher.close()
        for timer in (self._settling, self._telling):
            if timer is not None:
                timer.cancel()

    def _note(self, paths: Sequence[str] | None) -> None:
        """Something has changed in these files; nothing for any."""
        if self._closed:
            return
        touched = None
        if paths is not None and len(paths) < _MANY_PATHS:
            touched = self._keeper.places.touched(paths)
        self._touched = _both(self._touched, touched)
        self._wake.set()
        if paths is not None:
            self._unsettled = _both(self._unsettled, touched)
            if self._settling is not None:
                self._settling.cancel()
            self._settling = self._loop.call_later(_SETTLING_SECONDS, self._settle)

    def _settle(self) -> None:
        self._touched = _both(self._touched, self._unsettled)
        self._unsettled = set()
        self._wake.set()

    def tell_soon(self) -> None:
        """Tell the listener, unless it is about to be told."""
        if self._telling is None:
            self._telling = self._loop.call_at(self._told_at + _TELLING_SECONDS, self._tell)

    def _tell(self) -> None:
        self._telling = None
        self._told_at = self._loop.time()
        self._listener()


def _both(some: set[str] | None, others: set[str] | None) -> set[str] | None:
    return None if some is None or others is None else some | others


def _soon(loop: AbstractEventLoop, work: Callable[[], object]) -> None:
    """Have the loop do something, if it still does anything."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(work)
