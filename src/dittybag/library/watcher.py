"""Watches folders for changes, in a thread of its own."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

#: Changes that follow each other faster than this are one burst ...
_STEP_MS: Final = 50
#: ... but nobody waits longer than this for the first of them.
_BURST_MS: Final = 300
#: How often to look whether the topmost folders are still the same.
_LOOK_MS: Final = 500
#: Where the system cannot tell of changes, folders are looked at this often.
_POLL_MS: Final = 300

#: Called in the watcher's thread with the paths that have changed; with nothing if it may be all of them.
FolderListener = Callable[[Sequence[str] | None], object]


class _Wanted(Struct, frozen=True):
    """What to watch."""

    folders: dict[str, int]
    tops: tuple[str, ...]


class _Question(Struct, frozen=True):
    """What the system's part asks at every step."""

    is_set: Callable[[], bool]


class FolderWatcher:
    """Tells of changes in some folders, each alone, without those inside it.

    Which folders there are is for somebody else to find out: the system's own way of watching a whole tree
    follows links out of it.
    """

    def __init__(self, listener: FolderListener) -> None:
        self._listener = listener
        self._wanted = _Wanted({}, ())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dittybag-watcher", daemon=True)

    def watch(self, folders: Mapping[str, int], tops: Sequence[str]) -> None:
        """Watch these folders from now on, each given with its inode: another one is not the same.

        `tops`: those that nobody above them is watched for, so that they may come and go unseen.
        """
        wanted = _Wanted(dict(folders), tuple(tops))
        if wanted != self._wanted:
            self._wanted = wanted
        if not self._thread.is_alive() and not self._ended.is_set():
            self._thread.start()

    def close(self) -> None:
        """Stop; nothing is told any more."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            wanted = self._wanted
            identities = _identities(wanted.tops)
            notify = _notifier(list(wanted.folders))
            # Whatever happened before somebody was watching.
            self._tell(None)
            with contextlib.closing(notify) if notify is not None else contextlib.nullcontext():
                while not self._is_over(wanted) and identities == _identities(wanted.tops):
                    self._wait(notify, wanted)

    def _is_over(self, wanted: _Wanted) -> bool:
        return self._ended.is_set() or wanted is not self._wanted

    def _wait(self, notify: RustNotify | None, wanted: _Wanted) -> None:
        """Wait for a change, for a while, or until something else is wanted."""
        if notify is None:
            self._ended.wait(_STEP_MS / 1000)
            return
        changes = notify.watch(_BURST_MS, _STEP_MS, _LOOK_MS, _Question(lambda: self._is_over(wanted)))
        if isinstance(changes, set):
            self._tell([path for _, path in changes])

    def _tell(self, paths: Sequence[str] | None) -> None:
        if not self._ended.is_set():
            self._listener(paths)


def _identities(folders: Sequence[str]) -> list[tuple[int, int] | None]:
    """Which folders these are; another one with the same name is not the same."""
    return [_identity(folder) for folder in folders]


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _notifier(folders: list[str]) -> RustNotify | None:
    """Something that knows of changes in these folders, if there are any."""
    if not folders:
        return None
    notifier = _extension()
    for polling in (False, True):
        try:
            return notifier(folders, False, polling, _POLL_MS, False, True)  # noqa: FBT003  # takes no keywords
        except (OSError, RuntimeError):
            # There may be too many folders for the system to watch, or one has just vanished.
            continue
    return None


def _extension() -> type[RustNotify]:
    """The part of watchfiles that we need, without the rest, which takes ten times as long to import."""
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
