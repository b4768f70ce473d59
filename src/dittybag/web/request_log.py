"""The latest requests of MCP clients to this server, for those who watch them arrive."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from dittybag.domain.accounts import Principal
from dittybag.protocol import Context

#: So many are remembered.
_KEPT: Final = 200
#: As much of a name as is remembered.
_LENGTH: Final = 100


class Call(Struct, frozen=True):
    """A request that was answered."""

    #: Microseconds since 1970.
    at: int
    method: str
    #: The name of a tool or prompt, or the URI of a resource.
    subject: str
    #: What the client calls itself.
    client: str
    #: Nothing where nobody has to say who they are.
    user: str | None
    outcome: str
    seconds: float


class Calls:
    """Remembers the latest requests."""

    def __init__(self) -> None:
        self._latest: deque[Call] = deque(maxlen=_KEPT)
        self._listeners: set[Callable[[], None]] = set()

    def observe(self, ctx: Context, outcome: str, seconds: float) -> None:
        """Remember a request. See `dittybag.protocol.server.Observer`."""
        params = ctx.params
        subject = params.get("name") or params.get("uri")
        client = ctx.client.get("name")
        self._latest.append(
            Call(
                time.time_ns() // 1000,
                ctx.method[:_LENGTH],
                subject[:_LENGTH] if isinstance(subject, str) else "",
                client[:_LENGTH] if isinstance(client, str) else "",
                ctx.principal.user if isinstance(ctx.principal, Principal) else None,
                outcome,
                seconds,
            )
        )
        for listener in self._listeners:
            listener()

    def latest(self, user: str | None) -> list[Call]:
        """Those of a user, the newest first; everybody's for the owner of the machine."""
        return [call for call in reversed(self._latest) if user is None or call.user == user]

    @contextmanager
    def heard_by(self, listener: Callable[[], None]) -> Iterator[None]:
        """Call `listener` for every request from now on."""
        self._listeners.add(listener)
        try:
            yield
        finally:
            self._listeners.discard(listener)
