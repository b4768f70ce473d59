"""HTTP requests and responses in ASGI terms: types, headers, bodies and errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, MutableMapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from msgspec import Struct

from dittybag.protocol.jsonrpc import error_frame
from dittybag.protocol.lazy_tls import asyncio
from dittybag.protocol.types import RequestId
from dittybag.protocol.wire_errors import InvalidRequest, ProtocolError, WireError

AsgiScope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]
#: A complete response: the HTTP status, a JSON body, and encoded lines of additional headers.
CompleteResponse: TypeAlias = tuple[int, bytes, bytes]

JSON: Final = b"application/json"
EVENTS: Final = b"text/event-stream"
#: How long, and how many bytes, the rest of a body that is too large is discarded.
DISCARD_SECONDS: Final = 10.0
DISCARD_BYTES: Final = 32 * 1024 * 1024
#: The `Accept` header that nearly all clients send.
_BOTH: Final = b"application/json, text/event-stream"
#: Scope key of the parsed `Headers`.
HEADERS: Final = "dittybag.headers"
#: Scope key of the `AuthInfo`, if the request was authenticated.
AUTH_INFO: Final = "dittybag.auth_info"
#: Scope key of a function that sets the `ClientResponses` which count what this connection has not read.
COUNT_UNREAD: Final = "dittybag.count_unread"
#: Scope key of the id under which the request is logged.
REQUEST_ID: Final = "dittybag.request_id"


class AuthInfo(Struct, frozen=True):
    """The authenticated principal of a request."""

    #: Sessions belong to this id.
    principal_id: str = ""
    #: The principal's permissions. The protocol passes them to tools and does not interpret them.
    principal: Any = None
    #: Whether the client gets notifications of changes.
    receives_notifications: bool = True


#: For requests without authentication.
ANONYMOUS: Final = AuthInfo()


class Disconnected(Exception):
    """The client disconnected before its request was complete."""


class ConflictingHeader(Exception):
    """A header occurs several times with different values."""


class HttpError(Exception):
    """A request is rejected with an HTTP error status."""

    def __init__(self, status: int, error: ProtocolError, *, headers: Iterable[Header] = ()) -> None:
        self.status = status
        self.error = error
        self.headers = tuple(headers)
        super().__init__(str(error))


class Headers:
    """The headers of a request, with names in lower case."""

    __slots__ = ("_first", "_raw", "cache")

    def __init__(self, raw: Sequence[Header]) -> None:
        #: Values derived from these headers alone. Requests with identical headers share them.
        self.cache: dict[Hashable, Any] = {}
        self._raw = raw
        # If a name occurs several times, the first value wins.
        self._first = dict(reversed(raw))

    @classmethod
    def from_scope(cls, scope: AsgiScope) -> Headers:
        """Return the headers of a request, parsed once per request."""
        headers: Headers | None = scope.get(HEADERS)
        if headers is None:
            headers = scope[HEADERS] = cls(scope["headers"])
        return headers

    def get(self, name: bytes) -> str | None:
        """Return the first value of a header, or `None`."""
        value = self._first.get(name)
        # Not every HTTP parser strips the value.
        return None if value is None else value.decode("latin-1").strip(" \t")

    def get_all(self, name: bytes) -> list[str]:
        if name not in self._first:
            return []
        return [value.decode("latin-1").strip(" \t") for found, value in self._raw if found == name]

    def get_unambiguous(self, name: bytes) -> str | None:
        """Return the value of a header, or `None`. Raises `ConflictingHeader` if its values differ."""
        if len(self._first) == len(self._raw) or name not in self._first:
            return self.get(name)
        if len(set(self.get_all(name))) > 1:
            raise ConflictingHeader(name.decode("latin-1"))
        return self.get(name)

    @property
    def scheme(self) -> str:
        """The scheme that the client uses: `http`, or `https` if a proxy says so in `X-Forwarded-Proto`."""
        return "https" if self.get(b"x-forwarded-proto") == "https" else "http"

    def accepts(self, media_type: str) -> bool:
        """Return whether the client accepts this media type. Without an `Accept` header it accepts any."""
        if self._first.get(b"accept") == _BOTH:
            return True
        accepted = ",".join(self.get_all(b"accept")).lower()
        if not accepted.strip():
            return True
        types = {
            name.strip()
            for part in accepted.split(",")
            for name, *parameters in [part.split(";")]
            if _is_acceptable(parameters)
        }
        return not types.isdisjoint((media_type, media_type.partition("/")[0] + "/*", "*/*"))


#: Handles a POST request synchronously. Returns a complete response, or an application that finishes the
#: request, or `None` if nothing was done and the request must take the normal path.
SyncHandler: TypeAlias = Callable[[Headers, bytes], CompleteResponse | Application | None]
#: A `SyncHandler` for an authenticated request.
AuthenticatedSyncHandler: TypeAlias = Callable[
    [Headers, bytes, AuthInfo], CompleteResponse | Application | None
]


def _is_acceptable(parameters: Iterable[str]) -> bool:
    """Return whether the parameters of a media type allow it: `q=0` does not."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            return value.strip().strip("0.") != ""
    return True


async def read_body(headers: Headers, receive: Receive, limit: int, seconds: float) -> bytes:
    """Return the body of a request. Raises `HttpError` or `Disconnected`.

    The timeout starts with the first part of the body; waiting for that part is up to the HTTP server.
    """
    length = headers.get(b"content-length")
    if length is not None and length.isdigit() and int(length) > limit:
        raise _too_large(limit)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Disconnected
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        try:
            async with asyncio.timeout(seconds):
                return await _read_rest(body, receive, limit)
        except TimeoutError:
            message_text = f"the request body did not arrive within {seconds:g} seconds"
            raise HttpError(408, ProtocolError(message_text), headers=[(b"connection", b"close")]) from None
    if len(body) > limit:
        raise _too_large(limit)
    return body


async def _read_rest(begin: bytes, receive: Receive, limit: int) -> bytes:
    chunks, size = [begin], len(begin)
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limit:
            raise _too_large(limit)
        more = message.get("more_body", False)
    return b"".join(chunks)


def _too_large(limit: int) -> HttpError:
    problem = f"Invalid Request: the body must have at most {limit} bytes"
    return HttpError(413, InvalidRequest(problem), headers=[(b"connection", b"close")])


async def respond(
    send: Send, status: int, body: bytes = b"", media_type: bytes = JSON, headers: Iterable[Header] = ()
) -> None:
    """Send a complete response."""
    length = (b"content-length", str(len(body)).encode())
    content_type = [(b"content-type", media_type)] if body else []
    await send(
        {"type": "http.response.start", "status": status, "headers": [*content_type, length, *headers]}
    )
    await send({"type": "http.response.body", "body": body})


async def send_error(
    send: Send, error: HttpError, request_id: RequestId | None = None, *, receive: Receive | None = None
) -> None:
    """Respond with an HTTP error status and a JSON-RPC error.

    `receive`: after a response to a body that is too large, receives the rest of it, which is discarded: if
    the connection were closed at once, a client that is still sending would not get the response.
    """
    wire_error = WireError(error.error.code, error.error.message, error.error.data)
    frame = error_frame(request_id, wire_error, null_id=True)
    if error.status != 413 or receive is None:
        await respond(send, error.status, frame, headers=error.headers)
        return
    length = (b"content-length", b"%d" % len(frame))
    headers = [(b"content-type", JSON), length, *error.headers]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": frame, "more_body": True})
    left = DISCARD_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            while left > 0 and (message := await receive()).get("more_body", False):
                left -= len(message["body"])
    await send({"type": "http.response.body", "body": b""})
