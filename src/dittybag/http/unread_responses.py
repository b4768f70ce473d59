"""Limits on the responses that clients have not read yet, for each client and in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct

#: Shorter responses are always sent, and not counted.
LARGE_BYTES: Final = 64 * 1024

#: Adds to the unread bytes of a client, and removes them when its connection has sent them.
CountUnread: TypeAlias = "Callable[[ClientResponses, int], None]"


class UnreadLimits(Struct, frozen=True):
    """Beyond these limits, large responses are replaced by an error."""

    client_bytes: int = 128 * 1024 * 1024
    all_bytes: int = 512 * 1024 * 1024


class UnreadResponses:
    """Counts the unread bytes of every client, by the id of its principal."""

    def __init__(self, limits: UnreadLimits | None = None) -> None:
        self._limits = limits or UnreadLimits()
        self._bytes: Counter[str] = Counter()

    def of(self, client: str, count: CountUnread | None) -> ClientResponses:
        """`count`: tells the connection how much is sent, so that it counts what the client has not read."""
        return ClientResponses(self, client, count)

    def has_room(self, client: str, size: int) -> bool:
        """Return whether a response of this size may be sent."""
        limits, unread = self._limits, self._bytes[client]
        if unread == 0:
            # A client that reads its responses does not suffer from one that does not.
            return True
        return unread + size <= limits.client_bytes and self._bytes.total() + size <= limits.all_bytes

    def add(self, client: str, size: int) -> None:
        self._bytes[client] += size

    def remove(self, client: str, size: int) -> None:
        self._bytes[client] -= size
        if not self._bytes[client]:
            del self._bytes[client]


class ClientResponses:
    """The unread responses of one client."""

    __slots__ = ("_all", "_client", "_count")

    def __init__(self, all_clients: UnreadResponses, client: str, count: CountUnread | None) -> None:
        self._all = all_clients
        self._client = client
        self._count = count

    def may_send(self, size: int) -> bool:
        """Return whether a response of this size may be sent. If so, count it as unread."""
        if size <= LARGE_BYTES:
            return True
        if not self._all.has_room(self._client, size):
            return False
        if self._count is not None:
            self._count(self, size)
        return True

    def add(self, size: int) -> None:
        self._all.add(self._client, size)

    def remove(self, size: int) -> None:
        self._all.remove(self._client, size)
