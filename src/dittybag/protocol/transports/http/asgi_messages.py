"""HTTP requests and answers as ASGI carries them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, MutableMapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from dittybag.protocol.jsonrpc import error_frame
from dittybag.protocol.lazy_tls import asyncio
from dittybag.protocol.types import RequestId
from dittybag.protocol.wire_errors import ProtocolError, WireError

AsgiScope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]
#: A whole answer: the status of HTTP, JSON, and lines of further headers.
CompleteResponse: TypeAlias = tuple[int, bytes, bytes]

JSON: Final = b"application/json"
EVENTS: Final = b"text/event-stream"
#: What nearly all clients accept.
_BOTH: Final = b"application/json, text/event-stream"
#: Where a request carries its headers for all who ask for them.
HEADERS: Final = "dittybag.headers"
#: Where a request says who makes it, if somebody has found that out.
AUTH_INFO: Final = "dittybag.auth_info"
#: Where it carries the id under which it is logged.
REQUEST_ID: Final = "dittybag.request_id"


class AuthInfo(Struct, frozen=True):
    """Who makes a request, as far as that was found out."""

    #: Sessions belong to it.
    principal_id: str = ""
    #: What they may do, in the words of whoever builds the server.
    principal: Any = None
    #: Whether they are told of changes.
    receives_notifications: bool = True


#: Where nobody is asked who they are.
ANONYMOUS: Final = AuthInfo()


class Disconnected(Exception):
    """The client has gone before its request was complete."""


class ConflictingHeader(Exception):
    """A header that came several times, and not with the same value."""


class HttpError(Exception):
    """A request that is answered with an error of HTTP."""

    def __init__(self, status: int, error: ProtocolError, *, headers: Iterable[Header] = ()) -> None:
        self.status = status
        self.error = error
        self.headers = tuple(headers)
        super().__init__(str(error))


class Headers:
    """The headers of a request. ASGI has their names in lower case."""

    __slots__ = ("_first", "_raw", "cache")

    def __init__(self, raw: Sequence[Header]) -> None:
        #: What was found out about these headers: a client may send the same again and again.
        self.cache: dict[Hashable, Any] = {}
        self._raw = raw
        # Of several with one name the first counts.
        self._first = dict(reversed(raw))

    @classmethod
    def from_scope(cls, scope: AsgiScope) -> Headers:
        """The headers of a request, which are read once for all who ask for them."""
        headers: Headers | None = scope.get(HEADERS)
        if headers is None:
            headers = scope[HEADERS] = cls(scope["headers"])
        return headers

    def get(self, name: bytes) -> str | None:
        """The value of a header; the first, if it came several times."""
        value = self._first.get(name)
        # Stripped here: not every parser does it.
        return None if value is None else value.decode("latin-1").strip(" \t")

    def get_all(self, name: bytes) -> list[str]:
        if name not in self._first:
            return []
        return [value.decode("latin-1").strip(" \t") for found, value in self._raw if found == name]

    def get_unambiguous(self, name: bytes) -> str | None:
        """The value of a header that all agree on: nothing if it is not there. Raises `ConflictingHeader`."""
        if len(self._first) == len(self._raw) or name not in self._first:
            return self.get(name)
        if len(set(self.get_all(name))) > 1:
            raise ConflictingHeader(name.decode("latin-1"))
        return self.get(name)

    def accepts(self, kind: str) -> bool:
        """Whether the client takes answers of this media type. One that does not say takes any."""
        if self._first.get(b"accept") == _BOTH:
            return True
        wanted = ",".join(self.get_all(b"accept")).lower()
        if not wanted.strip():
            return True
        kinds = {
            media.strip() for part in wanted.split(",") for media, *rest in [part.split(";")] if _wants(rest)
        }
        return not kinds.isdisjoint((kind, kind.partition("/")[0] + "/*", "*/*"))


#: Answers a POST request at once, or says who answers it later. `None`: nothing was done, and it is to be
#: answered in the usual way.
SyncHandler: TypeAlias = Callable[[Headers, bytes], CompleteResponse | Application | None]
#: The same for somebody who is known.
AuthenticatedSyncHandler: TypeAlias = Callable[
    [Headers, bytes, AuthInfo], CompleteResponse | Application | None
]


def _wants(parameters: Iterable[str]) -> bool:
    """Whether a media type with these parameters is welcome: one of no quality at all is not."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            return value.strip().strip("0.") != ""
    return True


async def read_body(headers: Headers, receive: Receive, limit: int, seconds: float) -> bytes:
    """The body of a request. Raises `HttpError` or `Disconnected`.

    It has some seconds to arrive from its first byte on; that one is up to whoever serves us.
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
                return await _rest(body, receive, limit)
        except TimeoutError:
            words = f"the body of the request did not arrive within {seconds:g} seconds"
            raise HttpError(408, ProtocolError(words), headers=[(b"connection", b"close")]) from None
    if len(body) > limit:
        raise _too_large(limit)
    return body


async def _rest(begin: bytes, receive: Receive, limit: int) -> bytes:
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
    words = f"the body of a request has at most {limit} bytes"
    return HttpError(413, ProtocolError(words), headers=[(b"connection", b"close")])


async def respond(
    send: Send, status: int, body: bytes = b"", kind: bytes = JSON, headers: Iterable[Header] = ()
) -> None:
    """Send a whole answer."""
    length = (b"content-length", str(len(body)).encode())
    about = [(b"content-type", kind)] if body else []
    await send({"type": "http.response.start", "status": status, "headers": [*about, length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def send_error(send: Send, refused: HttpError, request_id: RequestId | None = None) -> None:
    """Answer a request with an error of HTTP and of JSON-RPC."""
    error = WireError(refused.error.code, refused.error.message, refused.error.data)
    frame = error_frame(request_id, error, null_id=True)
    await respond(send, refused.status, frame, headers=refused.headers)
