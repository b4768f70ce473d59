"""The state of prompt libraries, and a search in their prompts."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable
from typing import Final

from dittybag.domain.libraries import LibraryPrompt, LibraryReport
from dittybag.domain.ports import Libraries
from dittybag.domain.text import fold
from dittybag.protocol.lazy_asyncio import asyncio

_log = logging.getLogger("dittybag")

#: How long a page waits for the check, which then continues in the background.
_WAIT_SECONDS: Final = 0.05
#: Larger collections are not checked here, because that would delay other requests.
_MAX_CHECKED_PROMPTS: Final = 2000
#: Maximum number of prompts that a search reads, and how many it reads at a time.
_MAX_SEARCHED: Final = 20_000
_PAGE_SIZE: Final = 1000


class LibraryChecks:
    """Checks all templates of the libraries: one check at a time, once for each state of the files."""

    def __init__(self, libraries: Libraries) -> None:
        self._libraries = libraries
        self._latest: tuple[Hashable, list[LibraryReport]] | None = None
        self._running: asyncio.Task[None] | None = None

    async def reports(self) -> tuple[list[LibraryReport], bool]:
        """Return the reports, and whether they include a check of the current files."""
        reports = await self._libraries.reports()
        if not 0 < sum(report.prompts for report in reports) <= _MAX_CHECKED_PROMPTS:
            return reports, True
        if not self._is_fresh():
            if self._running is None or self._running.done():
                self._running = asyncio.create_task(self._run())
            await asyncio.wait((self._running,), timeout=_WAIT_SECONDS)
        if self._latest is not None and self._is_fresh():
            return self._latest[1], True
        return reports, False

    def _is_fresh(self) -> bool:
        return self._latest is not None and self._latest[0] == self._libraries.stamp()

    async def _run(self) -> None:
        stamp = self._libraries.stamp()
        try:
            reports = await self._libraries.check()
        except Exception:  # noqa: BLE001  # the edge of this task: the page shows the reports without a check
            _log.exception("checking the libraries failed")
            reports = await self._libraries.reports()
        self._latest = stamp, reports


def matching_prompts(prompts: Iterable[LibraryPrompt], text: str) -> list[LibraryPrompt]:
    """Return the prompts whose name, title or description contains a text, ignoring case."""
    needle = fold(text)
    return [
        prompt
        for prompt in prompts
        if any(needle in fold(part or "") for part in (prompt.name, prompt.title, prompt.description))
    ]


async def search_prompts(libraries: Libraries, text: str, limit: int) -> list[LibraryPrompt]:
    """Return the first matching prompts of all libraries."""
    matching: list[LibraryPrompt] = []
    searched, after = 0, ""
    while searched < _MAX_SEARCHED and len(matching) < limit:
        prompts = await libraries.page(after, _PAGE_SIZE)
        matching += matching_prompts(prompts, text)
        if len(prompts) < _PAGE_SIZE:
            break
        searched, after = searched + len(prompts), prompts[-1].name
    return matching[:limit]
