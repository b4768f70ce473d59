"""HTTP requests and answers as ASGI carries them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final, TypeAlias

from satchel.protocol.aio import asyncio
from satchel.protocol.errors import ProtocolError, WireError
from satchel.protocol.jsonrpc import error_frame
from satchel.protocol.types import RequestId

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

#: A client that does not take what it asked for within this time has gone.
WRITE_SECONDS: Final = 30.0

JSON: Final = b"application/json"
EVENTS: Final = b"text/event-stream"


class Disconnected(Exception):
    """The client has gone before its request was complete."""


class Refused(Exception):
    """A request that is answered with an error of HTTP."""

    def __init__(self, status: int, error: ProtocolError, *, headers: Iterable[Header] = ()) -> None:
        self.status = status
        self.error = error
        self.headers = tuple(headers)
        super().__init__(str(error))


class Headers:
    """The headers of a request, by their names in lower case."""

    def __init__(self, raw: Iterable[Header]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in raw:
            # Stripped here: not every parser does it.
            text = value.decode("latin-1").strip(" \t")
            self._values.setdefault(name.decode("latin-1").lower(), []).append(text)

    def get(self, name: str) -> str | None:
        """The value of a header; the first, if it came several times."""
        values = self._values.get(name)
        return values[0] if values else None

    def all(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def accepts(self, kind: str) -> bool:
        """Whether the client takes answers of this media type. One that does not say takes any."""
        wanted = ",".join(self.all("accept"))
        if not wanted.strip():
            return True
        family = kind.partition("/")[0] + "/*"
        kinds = {part.partition(";")[0].strip().lower() for part in wanted.split(",")}
        return not kinds.isdisjoint((kind, family, "*/*"))


async def read_body(headers: Headers, receive: Receive, limit: int, seconds: float) -> bytes:
    """The body of a request. Raises `Refused` or `Disconnected`."""
    length = headers.get("content-length")
    if length is not None and length.isdigit() and int(length) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(seconds):
            return await _read(receive, limit)
    except TimeoutError:
        words = f"the body of the request did not arrive within {seconds:g} seconds"
        raise Refused(408, ProtocolError(words), headers=[(b"connection", b"close")]) from None


async def _read(receive: Receive, limit: int) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    if message["type"] == "http.request" and not message.get("more_body"):
        if len(body) > limit:
            raise _too_large(limit)
        return body
    chunks, size = [body], len(body)
    while message.get("more_body") or message["type"] != "http.request":
        if message["type"] == "http.disconnect":
            raise Disconnected
        message = await receive()
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limit:
            raise _too_large(limit)
    return b"".join(chunks)


def _too_large(limit: int) -> Refused:
    words = f"the body of a request has at most {limit} bytes"
    return Refused(413, ProtocolError(words), headers=[(b"connection", b"close")])


async def respond(
    send: Send, status: int, body: bytes = b"", kind: bytes = JSON, headers: Iterable[Header] = ()
) -> None:
    """Send a whole answer."""
    length = (b"content-length", str(len(body)).encode())
    about = [(b"content-type", kind)] if body else []
    await send({"type": "http.response.start", "status": status, "headers": [*about, length, *headers]})
    await write(send, body, more=False)


async def write(send: Send, data: bytes, *, more: bool) -> None:
    """Send a part of an answer. Raises `Disconnected` if the client does not take it."""
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            await send({"type": "http.response.body", "body": data, "more_body": more})
    except TimeoutError:
        raise Disconnected from None


async def refuse(send: Send, refused: Refused, request_id: RequestId | None = None) -> None:
    """Answer a request with an error of HTTP and of JSON-RPC."""
    error = WireError(refused.error.code, refused.error.message, refused.error.data)
    frame = error_frame(request_id, error, null_id=True)
    await respond(send, refused.status, frame, headers=refused.headers)
