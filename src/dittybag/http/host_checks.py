"""Middleware that checks the `Host` and `Origin` headers, against DNS rebinding.

A web page can make a browser send requests to a server on the same machine, under a host name of its own. So
the `Host` of a request must be one of the server's names, and its `Origin`, if present, one of these names
with the scheme of the server, or another allowed one.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Final

from dittybag.http.asgi_messages import Headers, HttpError, header_text
from dittybag.http.http_request import HttpRequest
from dittybag.protocol.wire_errors import InvalidRequest

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


class HostCheck:
    """Refuses requests without an allowed `Host` and `Origin`."""

    def __init__(self, *, hosts: Collection[str] = LOOPBACK, origins: Collection[str] = ()) -> None:
        """`hosts`: names without ports. `origins`: other allowed origins, such as https://example.org."""
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)

    def __call__(self, request: HttpRequest) -> None:
        headers = request.headers
        # Several headers, joined with commas, are not a host name.
        if _host_name(headers.joined(b"host")) not in self._hosts:
            raise HttpError(
                421,
                InvalidRequest(
                    "The name in the Host header is not allowed on this server (see --allow-host)"
                ),
            )
        if headers.get_bytes(b"origin") is not None:
            self._check_origins(headers)

    def _check_origins(self, headers: Headers) -> None:
        for origin in headers.get_all(b"origin"):
            scheme, _, rest = origin.lower().partition("://")
            is_local = (
                scheme == headers.scheme
                and "/" not in rest
                and _host_name(rest.encode("latin-1")) in self._hosts
            )
            if not is_local and origin.lower() not in self._origins:
                raise HttpError(403, InvalidRequest("Requests from this Origin are not allowed"))


@lru_cache(64)
def _host_name(host: bytes) -> str:
    """Return a host without its port."""
    text = header_text(host).lower()
    name, colon, port = text.rpartition(":")
    if colon and port.isdigit() and (":" not in name or name.endswith("]")):
        return name
    return text
