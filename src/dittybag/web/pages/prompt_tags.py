"""The tags in use, which every list and form of prompts proposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from weakref import WeakKeyDictionary

from dittybag.domain.changes import ChangeNotification
from dittybag.domain.ports import Store
from dittybag.domain.prompts import TagCount
from dittybag.web.browser_requests import WebRequest

#: As many as anybody looks through.
MOST_TAGS: Final = 200
_MOST_PROJECTS: Final = 1000


class _Known:
    """The most used tags of projects, until a prompt there changes: a large store takes its time to count."""

    def __init__(self, store: Store) -> None:
        self._tags: dict[int, list[TagCount]] = {}
        #: Counts the news, to tell whether something has changed while the tags were counted.
        self._heard = 0
        store.subscribe(self._forget)

    def _forget(self, news: Sequence[ChangeNotification]) -> None:
        self._heard += 1
        for item in news:
            if item.kind == "prompt" and item.project is not None:
                self._tags.pop(item.project, None)

    async def find(self, request: WebRequest) -> list[TagCount]:
        project = request.caller.project
        known = self._tags.get(project)
        if known is not None:
            return known
        heard = self._heard
        found = (await request.workspace.prompts.tags(request.caller))[:MOST_TAGS]
        if heard == self._heard:
            if len(self._tags) >= _MOST_PROJECTS:
                self._tags.clear()
            self._tags[project] = found
        return found


_stores: Final[WeakKeyDictionary[Store, _Known]] = WeakKeyDictionary()


async def tags_in_use(request: WebRequest) -> list[TagCount]:
    """The most used tags of the project of a page, the most used first."""
    store = request.workspace.store
    known = _stores.get(store)
    if known is None:
        known = _stores[store] = _Known(store)
    return await known.find(request)
