"""Counts the uses of prompts and notes which clients send requests; both are written in the background."""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dittybag.domain.accounts import Principal
from dittybag.domain.errors import DittybagError
from dittybag.domain.prompts import Prompt
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.request_context import Context
from dittybag.services.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from dittybag.domain.libraries import LibraryPrompt
    from dittybag.domain.usage import PendingUsage, Transport
    from dittybag.protocol.server import Preparation

#: Usage is written this long after the first use that is not written yet.
_WRITE_SECONDS: Final = 3.0
#: A client that sends requests all the time is written this often.
_SEEN_SECONDS: Final = 60.0
#: How long the end of a server waits for the last write: another process may hold the lock.
_CLOSING_SECONDS: Final = 0.2
#: At most this many uses and clients are kept until they are written; more are not counted.
_MAX_PENDING: Final = 10_000
#: At most this many characters of a name or version are kept.
_MAX_LENGTH: Final = 1_000

#: Methods that clients also use to see whether there is a server.
_PROBES: Final = frozenset({"initialize", "ping", "server/discover"})

_log = logging.getLogger("dittybag")

#: A project, the key of a prompt and the name of a client.
_Use: TypeAlias = tuple[int, str, str]
#: A user, and the name and version of a client.
_Client: TypeAlias = tuple[str, str, str]


class UsageRecorder:
    """The usage of this process since the last write. No request waits for it."""

    def __init__(self, workspace: Workspace, transport: Transport) -> None:
        self._workspace = workspace
        self._transport: Transport = transport
        self._uses: dict[_Use, int] = {}
        self._clients: dict[_Client, None] = {}
        #: Until when a client need not be noted again.
        self._seen_until: dict[_Client, float] = {}
        #: The last noted `clientInfo`, its principal, and until when they need not be noted again.
        self._last: tuple[object, object, float] = (None, None, 0.0)
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Future[None] | None = None

    def preparation(self, inner: Preparation | None) -> Preparation:
        """Return a preparation of requests that notes their clients, and then calls another one."""

        def prepare(ctx: Context) -> Awaitable[None] | None:
            if ctx.method not in _PROBES:
                self._note_client(ctx)
            return None if inner is None else inner(ctx)

        return prepare

    def count(self, project: int, prompt: Prompt | LibraryPrompt, ctx: Context) -> None:
        """Count a use of a prompt by the client of a request."""
        key = prompt.id if isinstance(prompt, Prompt) else prompt.name
        use = (project, key, _text(ctx.client.get("name")))
        if use in self._uses or len(self._uses) < _MAX_PENDING:
            self._uses[use] = self._uses.get(use, 0) + 1
            self._write_soon()

    def _note_client(self, ctx: Context) -> None:
        info, principal, until = self._last
        now = monotonic()
        if (info is ctx.client and principal is ctx.principal and now < until) or not ctx.client:
            return
        user = ctx.principal.user if isinstance(ctx.principal, Principal) else ""
        client = user, _text(ctx.client.get("name")), _text(ctx.client.get("version"))
        until = self._seen_until.get(client, 0.0)
        if now >= until:
            if len(self._seen_until) >= _MAX_PENDING:
                self._seen_until.clear()
                self._clients.clear()
            until = self._seen_until[client] = now + _SEEN_SECONDS
            self._clients[client] = None
            self._write_soon()
        self._last = ctx.client, ctx.principal, until

    def _write_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WRITE_SECONDS, self._start_writing)

    def _start_writing(self) -> None:
        self._timer = None
        self._writing = asyncio.ensure_future(self._write(self._take_pending()))

    def _take_pending(self) -> PendingUsage:
        # Imported here because no request needs it.
        from dittybag.domain.usage import Client, PendingUsage, PromptUse, client_name, client_version

        counts: dict[PromptUse, int] = {}
        for (project, prompt, name), count in self._uses.items():
            use = PromptUse(project, prompt, client_name(name))
            counts[use] = counts.get(use, 0) + count
        clients = (
            Client(user, client_name(name), client_version(version), self._transport)
            for user, name, version in self._clients
            if name
        )
        usage = PendingUsage(counts, tuple(clients))
        self._uses, self._clients = {}, {}
        return usage

    async def _write(self, usage: PendingUsage) -> None:
        """Write what was collected. If that fails, it is lost."""
        try:
            await self._workspace.usage.record(usage)
        except DittybagError as error:
            # Requests fail with the same error and report it.
            _log.info("the usage of prompts could not be recorded: %s", error)

    async def close(self) -> None:
        """Write the rest, if that does not take long."""
        if self._timer is not None:
            self._timer.cancel()
            self._start_writing()
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=_CLOSING_SECONDS)
            self._writing.cancel()


def _text(value: Any) -> str:
    """Return a text that a client has stated; empty if it is not a text."""
    return value[:_MAX_LENGTH] if isinstance(value, str) else ""
