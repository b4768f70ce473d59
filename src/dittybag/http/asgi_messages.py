"""HTTP in ASGI terms: types, request headers and errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from dittybag.protocol.wire_errors import ProtocolError

AsgiScope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

JSON: Final = b"application/json"
EVENTS: Final = b"text/event-stream"
#: Scope key of a function that counts a large response as unread until its connection has sent most of it.
COUNT_UNREAD: Final = "dittybag.count_unread"


class AuthInfo(Struct, frozen=True):
    """The authenticated principal of a request."""

    #: Sessions belong to this id.
    principal_id: str = ""
    #: The principal's permissions. The endpoint passes them to tools and does not interpret them.
    principal: Any = None
    #: Whether the client gets notifications of changes.
    receives_notifications: bool = True


#: For requests without authentication.
ANONYMOUS: Final = AuthInfo()


class Disconnected(Exception):
    """The client disconnected before its request was complete."""


class HttpError(Exception):
    """A request is rejected with an HTTP error status."""

    def __init__(self, status: int, error: ProtocolError, *, headers: Iterable[Header] = ()) -> None:
        self.status = status
        self.error = error
        self.headers = tuple(headers)
        super().__init__(str(error))


class Headers:
    """The headers of a request, with names in lower case."""

    __slots__ = ("_first", "_raw", "has_duplicates")

    def __init__(self, raw: Sequence[Header]) -> None:
        self._raw = raw
        # If a name occurs several times, the first value wins.
        self._first = dict(reversed(raw))
        #: Whether a name occurs several times.
        self.has_duplicates = len(self._first) != len(raw)

    def get_bytes(self, name: bytes) -> bytes | None:
        """Return the first value of a header as it was sent, or `None`."""
        return self._first.get(name)

    def get(self, name: bytes) -> str | None:
        """Return the first value of a header, or `None`."""
        value = self._first.get(name)
        return None if value is None else header_text(value)

    def get_all(self, name: bytes) -> list[str]:
        if name not in self._first:
            return []
        if not self.has_duplicates:
            return [header_text(self._first[name])]
        return [header_text(value) for found, value in self._raw if found == name]

    def joined(self, name: bytes) -> bytes:
        """Return all values of a header, separated by commas."""
        if not self.has_duplicates:
            return self._first.get(name, b"")
        return b",".join(value for found, value in self._raw if found == name)

    @property
    def scheme(self) -> str:
        """The scheme that the client uses: `http`, or `https` if a proxy says so in `X-Forwarded-Proto`."""
        return "https" if self.get(b"x-forwarded-proto") == "https" else "http"


def header_text(value: bytes) -> str:
    """Return the value of a header as text. Not every HTTP parser strips it."""
    return value.decode("latin-1").strip(" \t")


def accepts(accepted: str, media_type: str) -> bool:
    """Return whether an `Accept` header allows this media type. An empty one allows any."""
    if not accepted.strip():
        return True
    types = {
        name.strip()
        for part in accepted.lower().split(",")
        for name, *parameters in [part.split(";")]
        if _is_acceptable(parameters)
    }
    return not types.isdisjoint((media_type, media_type.partition("/")[0] + "/*", "*/*"))


def _is_acceptable(parameters: Iterable[str]) -> bool:
    """Return whether the parameters of a media type allow it: `q=0` does not."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            return value.strip().strip("0.") != ""
    return True
