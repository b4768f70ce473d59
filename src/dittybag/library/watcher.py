"""A folder watcher that runs in its own thread."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

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
