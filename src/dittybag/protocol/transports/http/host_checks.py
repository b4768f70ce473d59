"""Who may be spoken to: names under which a server is known, and pages that may call it.

A page in a browser can be made to send requests to a server on the same machine, under a name of its own. So
a request must be addressed to one of the server's names, and come from one of them if it comes from a page.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from dittybag.protocol.transports.http.asgi_messages import (
    Application,
    AsgiScope,
    CompleteResponse,
    Headers,
    HttpError,
    Receive,
    Send,
    SyncHandler,
    send_error,
)
from dittybag.protocol.wire_errors import InvalidRequest

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


class HostCheckMiddleware:
    """An application that lets only such requests through to another one."""

    def __init__(
        self, inner: Application, *, hosts: Collection[str] = LOOPBACK, origins: Collection[str] = ()
    ) -> None:
        """`hosts`: names without ports. `origins`: of pages elsewhere that may call, like https://example.org."""
        self._inner = inner
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers.from_scope(scope)
            if self not in headers.cache:
                headers.cache[self] = self._problem(headers)
            if (problem := headers.cache[self]) is not None:
                await send_error(send, problem)
                return
        await self._inner(scope, receive, send)

    def wrap_sync(self, inner: SyncHandler) -> SyncHandler:
        """The same for requests that are answered at once."""

        def guarded(headers: Headers, body: bytes) -> CompleteResponse | Application | None:
            # Only headers that have been let through before.
            return inner(headers, body) if headers.cache.get(self, headers) is None else None

        return guarded

    def _problem(self, headers: Headers) -> HttpError | None:
        hosts = headers.get_all(b"host")
        if len(hosts) != 1 or _name(hosts[0]) not in self._hosts:
            return HttpError(
                421, InvalidRequest("This server is not known under the name in the Host header")
            )
        for origin in headers.get_all(b"origin"):
            scheme, _, rest = origin.lower().partition("://")
            is_own = scheme in ("http", "https") and "/" not in rest and _name(rest) in self._hosts
            if not is_own and origin.lower() not in self._origins:
                return HttpError(403, InvalidRequest("Pages of this origin may not call this server"))
        return None


def _name(host: str) -> str:
    """A host without its port, if that is a number."""
    name, colon, port = host.lower().rpartition(":")
    if colon and port.isdigit() and (":" not in name or name.endswith("]")):
        return name
    return host.lower()
