"""An in-memory log of the latest MCP requests, shown on the Connect page."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from dittybag.domain.accounts import Principal
from dittybag.protocol.request_context import Context

#: Maximum number of logged requests.
_MAX_REQUESTS: Final = 200
#: Longer names are cut.
_MAX_NAME_LENGTH: Final = 100


class LoggedRequest(Struct, frozen=True):
    """A completed MCP request."""

    #: Microseconds since 1970.
    at: int
    method: str
    #: The name of a tool or prompt, or the URI of a resource.
    subject: str
    #: What the client calls itself.
    client: str
    #: None without authentication.
    user: str | None
    outcome: str
    seconds: float


class RequestLog:
    """Keeps the latest MCP requests in memory."""

    def __init__(self) -> None:
        self._latest: deque[LoggedRequest] = deque(maxlen=_MAX_REQUESTS)
        self._listeners: list[Callable[[], None]] = []

    def observe(self, ctx: Context, outcome: str, seconds: float) -> None:
        """Log a request. See `dittybag.protocol.server.Observer`."""
        params = ctx.params
        subject = params.get("name") or params.get("uri")
        client = ctx.client.get("name")
        self._latest.append(
            LoggedRequest(
                time.time_ns() // 1000,
                ctx.method[:_MAX_NAME_LENGTH],
                subject[:_MAX_NAME_LENGTH] if isinstance(subject, str) else "",
                client[:_MAX_NAME_LENGTH] if isinstance(client, str) else "",
                ctx.principal.user if isinstance(ctx.principal, Principal) else None,
                outcome,
                seconds,
            )
        )
        for listener in self._listeners:
            listener()

    def latest(self, user: str | None) -> list[LoggedRequest]:
        """Return the requests of a user, newest first; all requests for None."""
        return [call for call in reversed(self._latest) if user is None or call.user == user]

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every request."""
        self._listeners.append(listener)
