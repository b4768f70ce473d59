"""A cache of the tags in use, which prompt lists and forms suggest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from weakref import WeakKeyDictionary

from dittybag.domain.changes import ChangeNotification
from dittybag.domain.ports import Store
from dittybag.domain.prompts import TagCount
from dittybag.web.browser_requests import WebRequest

#: Maximum number of tags.
MAX_TAGS: Final = 200
_MAX_PROJECTS: Final = 1000


class _TagCache:
    """Caches the most used tags of each project until a prompt changes: counting is slow in a large store."""

    def __init__(self, store: Store) -> None:
        self._tags: dict[int, list[TagCount]] = {}
        #: Counts notifications, to detect changes while the tags are counted.
        self._notifications = 0
        store.subscribe(self._invalidate)

    def _invalidate(self, notifications: Sequence[ChangeNotification]) -> None:
        self._notifications += 1
        for item in notifications:
            if item.kind == "prompt" and item.project is not None:
                self._tags.pop(item.project, None)

    async def find(self, request: WebRequest) -> list[TagCount]:
        project = request.caller.project
        cached = self._tags.get(project)
        if cached is not None:
            return cached
        notifications_before = self._notifications
        found = (await request.workspace.prompts.tags(request.caller))[:MAX_TAGS]
        if notifications_before == self._notifications:
            if len(self._tags) >= _MAX_PROJECTS:
                self._tags.clear()
            self._tags[project] = found
        return found


_caches: Final[WeakKeyDictionary[Store, _TagCache]] = WeakKeyDictionary()


async def tags_in_use(request: WebRequest) -> list[TagCount]:
    """Return the most used tags of the project, most used first."""
    store = request.workspace.store
    cache = _caches.get(store)
    if cache is None:
        cache = _caches[store] = _TagCache(store)
    return await cache.find(request)
