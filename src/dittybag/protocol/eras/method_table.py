"""The methods of each revision. A method missing from the table is answered with "method not found"."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from dittybag.protocol.eras.versions import (
    NEWEST_HANDSHAKE,
    V2024_11_05,
    V2025_06_18,
    V2026_07_28,
    versions_between,
)

Capability = Literal["tools", "prompts", "resources", "completions", "logging"]


class Method(Struct, frozen=True, kw_only=True):
    """A request method of clients."""

    name: str
    since: str = V2024_11_05
    until: str = V2026_07_28
    #: Available only if the server declares this capability.
    capability: Capability | None = None
    #: Available only if the server offers resource subscriptions.
    needs_subscribe: bool = False
    #: Its result carries `ttlMs` and `cacheScope` in the stateless revisions.
    cacheable: bool = False
    #: The handler may ask the client questions.
    may_ask: bool = False
    #: It reads data that tools may write.
    reads: bool = False


_REQUESTS: Final = (
    Method(name="initialize", until=NEWEST_HANDSHAKE),
    Method(name="ping", until=NEWEST_HANDSHAKE),
    Method(name="server/discover", since=V2026_07_28, cacheable=True),
    Method(name="subscriptions/listen", since=V2026_07_28),
    Method(name="tools/list", capability="tools", cacheable=True),
    Method(name="tools/call", capability="tools", may_ask=True),
    Method(name="prompts/list", capability="prompts", cacheable=True, reads=True),
    Method(name="prompts/get", capability="prompts", may_ask=True, reads=True),
    Method(name="resources/list", capability="resources", cacheable=True, reads=True),
    Method(name="resources/templates/list", capability="resources", cacheable=True, reads=True),
    Method(name="resources/read", capability="resources", cacheable=True, may_ask=True, reads=True),
    Method(
        name="resources/subscribe",
        until=NEWEST_HANDSHAKE,
        capability="resources",
        needs_subscribe=True,
    ),
    Method(
        name="resources/unsubscribe",
        until=NEWEST_HANDSHAKE,
        capability="resources",
        needs_subscribe=True,
    ),
    Method(name="completion/complete", capability="completions", reads=True),
    Method(name="logging/setLevel", until=NEWEST_HANDSHAKE, capability="logging"),
)

#: All request methods, by method and version. Others are answered with -32601.
METHODS: Final = {
    (method.name, version): method
    for method in _REQUESTS
    for version in versions_between(method.since, method.until)
}

#: The methods that read data that tools may write.
READING_METHODS: Final = frozenset(method.name for method in _REQUESTS if method.reads)

#: All methods that a server may ask of a client, as a request or inside an `input_required` result.
CLIENT_METHODS: Final = frozenset(
    (name, version)
    for name, since in (
        ("sampling/createMessage", V2024_11_05),
        ("roots/list", V2024_11_05),
        ("elicitation/create", V2025_06_18),
    )
    for version in versions_between(since)
)
