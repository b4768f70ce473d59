"""Debounced refresh: reload libraries when their files change, and notify once per burst of changes."""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop, Event, TimerHandle, get_running_loop, timeout
from collections.abc import Callable, Sequence
from typing import Final

from dittybag.library.indexer import LibraryChanges, LibraryIndexer
from dittybag.library.watcher import FolderWatcher

#: Minimum time between two notifications.
_NOTIFY_INTERVAL_SECONDS: Final = 0.55
#: The system may drop events during a burst, so scan again when it is over.
_SETTLE_SECONDS: Final = 1.0
#: With this many changed paths or more, scan everything.
_MAX_PATHS: Final = 2_000
#: Write the cache after this long without changes.
_IDLE_SECONDS: Final = 2.0

_log = logging.getLogger("dittybag.library")


class LibraryRefresher:
    """Keeps the catalogue of an indexer up to date."""

    def __init__(
        self,
        indexer: LibraryIndexer,
        on_change: Callable[[LibraryChanges], object],
        notify: Callable[[], object],
    ) -> None:
        """`on_change` is called after every change; `notify` shortly after it, at a limited rate."""
        self._indexer = indexer
        self._on_change = on_change
        self._notify_listeners = notify
        self._loop = get_running_loop()
        self._watcher = FolderWatcher(
            lambda paths: _call_soon(self._loop, lambda: self._paths_changed(paths))
        )
        self._wake = Event()
        #: Folders to reload; None for all.
        self._pending: set[str] | None = set()
        #: Folders to scan once more when the current burst is over; None for all.
        self._unsettled: set[str] | None = set()
        self._settle_timer: TimerHandle | None = None
        self._notified_at = 0.0
        self._notify_timer: TimerHandle | None = None
        self._closed = False

    async def run(self) -> None:
        """Reload changed libraries until cancelled, starting with a complete scan."""
        # Only a complete scan finds all folders to watch.
        self._paths_changed(None)
        while True:
            await self._wake.wait()
            self._wake.clear()
            folders, self._pending = self._pending, set()
            try:
                changes = await self._indexer.refresh(folders)
                if changes.any:
                    self._on_change(changes)
                    self.notify_soon()
                self._watcher.watch(self._indexer.watched_folders(), self._indexer.folders.polled())
                await self._save_when_idle()
            except Exception:  # noqa: BLE001  # the edge of this task: no caller to raise to
                _log.exception("cannot reload the libraries")

    async def _save_when_idle(self) -> None:
        """Wait for more changes; write the cache if there are none for a while."""
        try:
            async with timeout(_IDLE_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            await self._indexer.save_cache()

    def close(self) -> None:
        """Stop watching and notifying."""
        self._closed = True
        self._watcher.close()
        for timer in (self._settle_timer, self._notify_timer):
            if timer is not None:
                timer.cancel()

    def _paths_changed(self, paths: Sequence[str] | None) -> None:
        """Schedule a reload of the libraries that contain these paths; None for all."""
        if self._closed:
            return
        folders = None
        if paths is not None and len(paths) < _MAX_PATHS:
            folders = self._indexer.folders.containing(paths)
        self._pending = _union(self._pending, folders)
        self._wake.set()
        if paths is not None:
            self._unsettled = _union(self._unsettled, folders)
            if self._settle_timer is not None:
                self._settle_timer.cancel()
            self._settle_timer = self._loop.call_later(_SETTLE_SECONDS, self._settle)

    def _settle(self) -> None:
        self._pending = _union(self._pending, self._unsettled)
        self._unsettled = set()
        self._wake.set()

    def notify_soon(self) -> None:
        """Schedule a notification, unless one is scheduled already."""
        if self._notify_timer is None:
            self._notify_timer = self._loop.call_at(
                self._notified_at + _NOTIFY_INTERVAL_SECONDS, self._notify
            )

    def _notify(self) -> None:
        self._notify_timer = None
        self._notified_at = self._loop.time()
        self._notify_listeners()


def _union(first: set[str] | None, second: set[str] | None) -> set[str] | None:
    return None if first is None or second is None else first | second


def _call_soon(loop: AbstractEventLoop, function: Callable[[], object]) -> None:
    """Call a function in the loop's thread, unless the loop is closed."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(function)
