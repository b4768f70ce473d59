"""ASGI middleware that checks the `Host` and `Origin` headers, against DNS rebinding.

A web page can make a browser send requests to a server on the same machine, under a host name of its own. So
the `Host` of a request must be one of the server's names, and its `Origin`, if present, one of these names
with the scheme of the server, or another allowed one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from dittybag.http.asgi_messages import (
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
    """Passes on requests with an allowed `Host` and `Origin`, and rejects all others."""

    def __init__(
        self, inner: Application, *, hosts: Collection[str] = LOOPBACK, origins: Collection[str] = ()
    ) -> None:
        """`hosts`: names without ports. `origins`: other allowed origins, such as https://example.org."""
        self._inner = inner
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers.from_scope(scope)
            if self not in headers.cache:
                headers.cache[self] = self._check(headers)
            if (error := headers.cache[self]) is not None:
                await send_error(send, error)
                return
        await self._inner(scope, receive, send)

    def wrap_sync(self, inner: SyncHandler) -> SyncHandler:
        """Wrap a synchronous handler. It gets only requests whose headers have passed the check before."""

        def checked(headers: Headers, body: bytes) -> CompleteResponse | Application | None:
            return inner(headers, body) if headers.cache.get(self, headers) is None else None

        return checked

    def _check(self, headers: Headers) -> HttpError | None:
        hosts = headers.get_all(b"host")
        if len(hosts) != 1 or _host_name(hosts[0]) not in self._hosts:
            return HttpError(
                421,
                InvalidRequest(
                    "The name in the Host header is not allowed on this server (see --allow-host)"
                ),
            )
        for origin in headers.get_all(b"origin"):
            scheme, _, rest = origin.lower().partition("://")
            is_local = scheme == headers.scheme and "/" not in rest and _host_name(rest) in self._hosts
            if not is_local and origin.lower() not in self._origins:
                return HttpError(403, InvalidRequest("Requests from this Origin are not allowed"))
        return None


def _host_name(host: str) -> str:
    """Return a host without its port."""
    name, colon, port = host.lower().rpartition(":")
    if colon and port.isdigit() and (":" not in name or name.endswith("]")):
        return name
    return host.lower()
