"""A cache of the tags in use, which prompt lists and forms suggest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dittybag.domain.changes import ChangeNotification
from dittybag.domain.prompts import TagCount
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace

_MAX_TAGS: Final = 200
_MAX_PROJECTS: Final = 1000


class TagCache:
    """Caches the most used tags of each project until a prompt changes: counting is slow in a large store."""

    def __init__(self, workspace: Workspace) -> None:
        self._prompts = workspace.prompts
        self._tags: dict[int, list[TagCount]] = {}
        #: Counts notifications, to detect changes while the tags are counted.
        self._notifications = 0
        workspace.store.subscribe(self._invalidate)

    def _invalidate(self, notifications: Sequence[ChangeNotification]) -> None:
        self._notifications += 1
        for item in notifications:
            if item.kind == "prompt" and item.project is not None:
                self._tags.pop(item.project, None)

    async def find(self, caller: Caller) -> list[TagCount]:
        """Return the most used tags of the caller's project, most used first."""
        cached = self._tags.get(caller.project)
        if cached is not None:
            return cached
        notifications_before = self._notifications
        found = (await self._prompts.tags(caller))[:_MAX_TAGS]
        if notifications_before == self._notifications:
            if len(self._tags) >= _MAX_PROJECTS:
                self._tags.clear()
            self._tags[caller.project] = found
        return found
