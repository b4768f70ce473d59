"""Debounced refresh: reload libraries when their files change, and notify once per burst of changes."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from asyncio import AbstractEventLoop, Event, TimerHandle, get_running_loop, timeout
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from dittybag.library.indexer import LibraryChanges, LibraryIndexer

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify


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


# Watching


#: Changes closer together than this are one burst ...
_STEP_MS: Final = 50
#: ... which is reported at the latest after this time.
_BURST_MS: Final = 300
#: How often to check that the root folders were not replaced.
_CHECK_MS: Final = 500
#: Polling interval where the system has no change notifications.
_POLL_MS: Final = 300

#: Called in the watcher's thread with the changed paths, or None if any path may have changed.
FolderListener = Callable[[Sequence[str] | None], object]


class _WatchTargets(Struct, frozen=True):
    """The folders to watch."""

    folders: dict[str, int]
    roots: tuple[str, ...]


class _StopEvent(Struct, frozen=True):
    """Has the interface that watchfiles expects of a stop event."""

    is_set: Callable[[], bool]


class FolderWatcher:
    """Watches individual folders, not recursively.

    The caller lists all subfolders, because the system's recursive mode follows links out of the tree.
    """

    def __init__(self, listener: FolderListener) -> None:
        self._listener = listener
        self._targets = _WatchTargets({}, ())
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dittybag-watcher", daemon=True)

    def watch(self, folders: Mapping[str, int], roots: Sequence[str]) -> None:
        """Watch these folders, given with their inodes, instead of the previous ones.

        `roots`: folders whose parents are not watched, as given, with links. They are polled to detect
        replacement of the folder or of a link.
        """
        targets = _WatchTargets(dict(folders), tuple(roots))
        if targets != self._targets:
            self._targets = targets
        if not self._thread.is_alive() and not self._closed.is_set():
            self._thread.start()

    def close(self) -> None:
        """Stop watching. The listener is not called again."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.is_set():
            targets = self._targets
            identities = _identities(targets.roots)
            notify = _create_notifier(list(targets.folders))
            # Changes may have happened before watching started.
            self._notify(None)
            with contextlib.closing(notify) if notify is not None else contextlib.nullcontext():
                while not self._should_stop(targets) and identities == _identities(targets.roots):
                    self._wait(notify, targets)

    def _should_stop(self, targets: _WatchTargets) -> bool:
        return self._closed.is_set() or targets is not self._targets

    def _wait(self, notify: RustNotify | None, targets: _WatchTargets) -> None:
        """Wait for a change, for a timeout, or until the targets change."""
        if notify is None:
            self._closed.wait(_STEP_MS / 1000)
            return
        changes = notify.watch(_BURST_MS, _STEP_MS, _CHECK_MS, _StopEvent(lambda: self._should_stop(targets)))
        if isinstance(changes, set):
            self._notify([path for _, path in changes])

    def _notify(self, paths: Sequence[str] | None) -> None:
        if not self._closed.is_set():
            self._listener(paths)


def _identities(folders: Sequence[str]) -> list[tuple[int, int] | None]:
    """Device and inode of each folder, to detect replacement."""
    return [_identity(folder) for folder in folders]


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _create_notifier(folders: list[str]) -> RustNotify | None:
    """A notifier for these folders; None if there are none or they cannot be watched."""
    if not folders:
        return None
    notifier = _load_notifier_class()
    for polling in (False, True):
        try:
            return notifier(folders, False, polling, _POLL_MS, False, True)  # noqa: FBT003  # takes no keywords
        except (OSError, RuntimeError):
            # Too many folders for the system to watch, or one was just deleted.
            continue
    return None


def _load_notifier_class() -> type[RustNotify]:
    """Load only the native part of watchfiles: the whole package takes ten times as long to import."""
    from importlib.machinery import EXTENSION_SUFFIXES
    from importlib.util import find_spec, module_from_spec, spec_from_file_location

    package = find_spec("watchfiles")
    locations = (package.submodule_search_locations or ()) if package is not None else ()
    for location in locations:
        for suffix in EXTENSION_SUFFIXES:
            path = os.path.join(location, f"_rust_notify{suffix}")
            spec = spec_from_file_location("watchfiles._rust_notify", path) if os.path.exists(path) else None
            if spec is not None and spec.loader is not None:
                module = module_from_spec(spec)
                spec.loader.exec_module(module)
                found: type[RustNotify] = module.RustNotify
                return found
    from watchfiles._rust_notify import RustNotify

    return RustNotify
