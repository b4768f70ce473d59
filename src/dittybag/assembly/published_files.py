"""Keeps published files in step with the prompts of a workspace while a server runs."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from dittybag.protocol.lazy_asyncio import asyncio  # isort: skip  # first: it imports asyncio without TLS

from dittybag.assembly.publishing import PublishingPlace, find_item
from dittybag.assembly.workspace_session import LibrarySession
from dittybag.clients.client_errors import ClientFileBusy, ClientFileError
from dittybag.clients.native_text import NotPublishable
from dittybag.clients.publishing_records import PublishingRecords, PublishingSource
from dittybag.clients.publishing_targets import TARGETS
from dittybag.domain.errors import DittybagError
from dittybag.domain.text import one_line
from dittybag.library.disk_thread import DiskThread
from dittybag.services.caller import Caller
from dittybag.services.workspace import WorkspaceSession

if TYPE_CHECKING:
    from dittybag.clients.publishing import FileOutcome
    from dittybag.library.library_service import LibraryService
    from dittybag.services.template_service import TemplateService
    from dittybag.services.workspace import Workspace

_log = logging.getLogger("dittybag")

#: Several changes within this time are published together.
_DELAY_SECONDS: Final = 0.1
#: How long to wait for other processes that publish, and until the next attempt.
_LOCK_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 5.0
_MAX_LENGTH: Final = 2000
_PROBLEMS: Final = {
    "conflict": (
        "was edited, and the prompt '%s' has changed too: the file is kept. To take the stored version, "
        "delete the file and publish again; to keep yours, save it with dittybag prompt edit and publish "
        "again"
    ),
    "absent": "was deleted, so that it no longer follows the prompt '%s'. To write it again, publish again",
}

#: What has changed: the prompts of a project, those of libraries, or possibly everything.
ChangedScope: TypeAlias = int | Literal["libraries", "all"]
#: A target, the name of a prompt or skill, and where it is published from.
PublishedItem: TypeAlias = tuple[str, str, PublishingSource]


class PublishedFiles:
    """Updates the files that were published from a database. What fails is logged, once for each reason.

    Each update reads the prompt while it holds the lock of the records, so that of several servers none
    writes an older version than another one did before.
    """

    def __init__(
        self,
        home: str,
        database: str,
        workspace: Workspace,
        templates: TemplateService,
        libraries: LibraryService,
        *,
        has_libraries: bool,
    ) -> None:
        """`database`: see `database_name`. `has_libraries`: whether the libraries are loaded."""
        self._home = home
        self._database = database
        self._workspace = workspace
        self._templates = templates
        self._libraries = libraries
        self._has_libraries = has_libraries
        self._records = PublishingRecords(home, lock_seconds=_LOCK_SECONDS)
        self._disk = DiskThread()
        self._waiting: set[ChangedScope] = set()
        self._task: asyncio.Task[None] | None = None
        #: The last logged problem of each item.
        self._logged: dict[PublishedItem, str] = {}

    def update(self, changed: Iterable[ChangedScope]) -> None:
        """Update the files of what has changed, in the background."""
        self._waiting.update(changed)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop. An update that is under way is finished or has no effect."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_LOCK_SECONDS)
        self._disk.close()

    async def _run(self) -> None:
        delay = _DELAY_SECONDS
        while self._waiting:
            await asyncio.sleep(delay)
            changed, self._waiting = self._waiting, set()
            try:
                is_complete = await self._update_changed(changed)
            except Exception:  # noqa: BLE001  # the edge of this task: no caller to raise to
                _log.exception("cannot update the published files")
                return
            delay = _DELAY_SECONDS if is_complete else _RETRY_SECONDS
            if not is_complete:
                self._waiting |= changed

    async def _update_changed(self, changed: set[ChangedScope]) -> bool:
        """Update files; return whether no other process was in the way."""
        records = await self._disk.run(lambda: self._records.of_database(self._database))
        items: dict[PublishedItem, None] = {}
        for record in records:
            if record.source is None or record.target not in TARGETS:
                continue
            is_library = ":" in record.item
            scope: ChangedScope = "libraries" if is_library else record.source.project
            if not changed.isdisjoint((scope, "all")) and (self._has_libraries or not is_library):
                items[record.target, record.item, record.source] = None
        is_complete = True
        for item in items:
            try:
                self._log_outcomes(item, await self._update_item(*item))
            except ClientFileBusy:
                is_complete = False
            except (ClientFileError, NotPublishable, DittybagError) as error:
                self._log_problem(item, f"'{one_line(item[1])}' for {TARGETS[item[0]].title}: {error}")
        return is_complete

    async def _update_item(self, target: str, name: str, source: PublishingSource) -> list[FileOutcome]:
        place = PublishingPlace(TARGETS[target], Path(source.root), self._home, source.is_user)
        caller = Caller(source.project, "dittybag")
        session = LibrarySession(WorkspaceSession(self._workspace, caller), self._templates, self._libraries)
        if ":" in name:
            # Others need not wait until the libraries are loaded.
            await self._libraries.find(name)
        async with self._lock():
            item = await find_item(session, name)
            return await self._disk.run(lambda: place.follow(item, source, self._records, dry_run=False))

    @asynccontextmanager
    async def _lock(self) -> AsyncIterator[None]:
        """Hold the lock of the records. Raises `ClientFileError`."""
        stack = ExitStack()
        await self._disk.run(lambda: stack.enter_context(self._records.lock()))
        try:
            yield
        finally:
            await self._disk.run(stack.close)

    def _log_outcomes(self, item: PublishedItem, outcomes: list[FileOutcome]) -> None:
        problems = [
            f"{outcome.file} {_PROBLEMS[outcome.state] % one_line(item[1])}"
            for outcome in outcomes
            if outcome.state in _PROBLEMS
        ]
        if problems:
            self._log_problem(item, "; ".join(problems))
        else:
            self._logged.pop(item, None)

    def _log_problem(self, item: PublishedItem, problem: str) -> None:
        if self._logged.get(item) != problem:
            self._logged[item] = problem
            _log.warning("A published file is not updated: %s", one_line(problem, _MAX_LENGTH))
