"""The resource `dittybag://tasks/ready`: what a client could claim now, and notifications of changes."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from dittybag.contracts.result_size import CHARACTERS_PER_TOKEN, MAX_TOKENS, json_length
from dittybag.contracts.task_rows import task_row
from dittybag.contracts.tool_specs import ServerScope
from dittybag.domain.changes import ChangeNotification
from dittybag.domain.claims import MICROSECONDS
from dittybag.domain.errors import DittybagError
from dittybag.domain.projects import DEFAULT_PROJECT, NEW_PROJECT
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.server import Server
from dittybag.protocol.subscriptions import Subscriptions
from dittybag.protocol.types import JsonObject, ResourceInfo, ResourceTemplateInfo
from dittybag.services.caller import Caller
from dittybag.services.task_queue import ClaimRequest, ReadyTasks
from dittybag.services.workspace import Workspace

URI: Final = "dittybag://tasks/ready"

INFO: Final = ResourceInfo(
    uri=URI,
    name="ready-tasks",
    title="Ready tasks",
    description="Tasks that task_next can claim now, best first; subscribe to learn when they change",
    mime_type="application/json",
)

#: The same among the templates, where the list of resources is that of a contract.
TEMPLATE: Final = ResourceTemplateInfo(
    uri_template=INFO.uri,
    name=INFO.name,
    title=INFO.title,
    description=INFO.description,
    mime_type=INFO.mime_type,
)

#: At most this many tasks are listed.
_MAX_LISTED: Final = 50
#: In seconds: clients are notified at most this often, and changes that come together notify them once.
_INTERVAL: Final = 0.3
_DEBOUNCE: Final = 0.02
#: In seconds: added to the time of a lapse, so that it is over.
_LAPSE_MARGIN: Final = 0.01

_log = logging.getLogger("dittybag")


async def queue_project(workspace: Workspace, caller: Caller) -> str | None:
    """Return the project whose tasks a connection works on; `None` for all, if it has the default project.

    Users who cannot change the project of the connection work on their own tasks and on other projects.
    """
    principal = caller.principal
    if caller.project == NEW_PROJECT or (principal is not None and not principal.changes_project):
        return None
    selected = await workspace.projects.of_caller(caller)
    return None if selected.name == DEFAULT_PROJECT else selected.name


async def _ready(workspace: Workspace, caller: Caller) -> ReadyTasks:
    if caller.project == NEW_PROJECT:
        # A folder has no tasks before its first write.
        return ReadyTasks([], 0)
    request = ClaimRequest(project=await queue_project(workspace, caller))
    return await workspace.task_queue.ready(caller, request, limit=_MAX_LISTED)


async def ready_content(workspace: Workspace, caller: Caller) -> str:
    """Return the content of the resource for a caller."""
    found = await _ready(workspace, caller)
    room = MAX_TOKENS * CHARACTERS_PER_TOKEN
    rows: list[JsonObject] = []
    for task in found.tasks:
        row = task_row(task)
        room -= json_length(row)
        if room < 0:
            break
        rows.append(row)
    return encode({"total": found.total, "tasks": rows}).decode()


class ReadyNotifications:
    """Notifies subscribed clients of a server when the set of ready tasks may have changed.

    That is when a task changes or a claim lapses. Users are notified only of changes that they can see.
    """

    def __init__(self, scope: ServerScope, server: Server) -> None:
        self._scope = scope
        self._server = server
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._last = 0.0
        self._running: set[asyncio.Future[None]] = set()
        #: What each user's client has been notified of.
        self._seen: WeakKeyDictionary[Subscriptions, object] = WeakKeyDictionary()
        #: Done when the clients that are about to subscribe have subscribed.
        self._subscribing: set[asyncio.Future[None]] = set()

    def start(self) -> None:
        self._scope.workspace.store.subscribe(self._on_changes)
        self._server.before_subscribe = self._before_subscribe
        self._server.on_subscribe = self._on_subscribe

    def _on_changes(self, changes: Sequence[ChangeNotification]) -> None:
        if any(change.kind in ("task", "project") for change in changes):
            self._notify_at(asyncio.get_running_loop().time() + _DEBOUNCE)

    async def _before_subscribe(self, subscriptions: Subscriptions, uris: Sequence[str]) -> None:
        """Remember what a client can see before it learns that it is subscribed: it misses nothing then."""
        if URI not in uris or subscriptions in self._seen:
            return
        subscribing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._subscribing.add(subscribing)
        try:
            await self._has_changed(subscriptions)
        except DittybagError as error:
            _log.warning("the ready tasks could not be read: %s", error)
        finally:
            self._subscribing.discard(subscribing)
            subscribing.set_result(None)

    def _on_subscribe(self, uri: str) -> None:
        if uri == URI:
            self._start(self._remember())

    def _notify_at(self, due: float) -> None:
        """Notify clients at a time, but not too early after the last time."""
        due = max(due, self._last + _INTERVAL)
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
            self._timer = None
        if self._subscribing or self._server.is_subscribed(URI):
            self._due = due
            self._timer = asyncio.get_running_loop().call_at(due, self._notify_soon)

    def _notify_soon(self) -> None:
        self._timer = None
        self._last = asyncio.get_running_loop().time()
        self._start(self._notify())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        running = asyncio.ensure_future(work)
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    async def _remember(self) -> None:
        """Remember what new subscribers can see, and that claims which exist already may lapse."""
        try:
            for subscriptions in self._server.subscribers(URI):
                if subscriptions not in self._seen:
                    await self._has_changed(subscriptions)
        except DittybagError as error:
            _log.warning("the ready tasks could not be read: %s", error)
        await self._wait_for_lapse()

    async def _notify(self) -> None:
        while self._subscribing:
            await asyncio.wait(self._subscribing)
        try:
            for subscriptions in self._server.subscribers(URI):
                if await self._has_changed(subscriptions):
                    subscriptions.resource_updated(URI)
        except DittybagError as error:
            _log.warning("clients could not be notified of ready tasks: %s", error)
        await self._wait_for_lapse()

    async def _wait_for_lapse(self) -> None:
        """Notify clients when the next claim lapses."""
        try:
            lapse = await self._scope.workspace.task_queue.next_lapse(Caller(self._scope.project, ""))
        except DittybagError as error:
            _log.warning("it is not known when the next claim lapses: %s", error)
            return
        if lapse is not None:
            now = asyncio.get_running_loop().time()
            self._notify_at(now + lapse / MICROSECONDS + _LAPSE_MARGIN)

    async def _has_changed(self, subscriptions: Subscriptions) -> bool:
        """Whether the ready tasks may have changed for a client. Others' tasks must not show in that."""
        session = subscriptions.session
        if session is None or session.principal is None:
            return True
        found = await _ready(self._scope.workspace, self._scope.caller_of_session(session))
        state = ([(task.id, task.version) for task in found.tasks], found.total)
        before = self._seen.get(subscriptions)
        self._seen[subscriptions] = state
        return state != before
