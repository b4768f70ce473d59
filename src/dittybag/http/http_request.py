"""One HTTP request, and the connection for its response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from time import perf_counter
from typing import Any, Final

from dittybag.http.asgi_messages import (
    ANONYMOUS,
    COUNT_UNREAD,
    JSON,
    AsgiScope,
    Disconnected,
    Header,
    Headers,
    HttpError,
    Receive,
    Send,
)
from dittybag.http.unread_responses import CountUnread
from dittybag.protocol.jsonrpc import error_frame
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.types import RequestId
from dittybag.protocol.wire_errors import InvalidRequest, ProtocolError, WireError

#: How long, and how many bytes, the rest of a body that is too large is discarded.
DISCARD_SECONDS: Final = 10.0
DISCARD_BYTES: Final = 32 * 1024 * 1024
#: How often the token of an open stream is verified again.
RECHECK_SECONDS: Final = 1.5

REQUEST_ID: Final = b"x-request-id"


class HttpRequest:
    """A request. Middlewares add what they find out about it."""

    #: The id under which the request is logged, which the response repeats; empty if it has none.
    id = b""
    auth = ANONYMOUS
    #: The status of the response; 0 until it starts.
    status = 0
    _is_complete = False
    #: Returns an error if the client may no longer wait for its response. Called while it waits.
    recheck: Callable[[], Awaitable[HttpError | None]] | None = None
    #: The error that `recheck` returned.
    revoked: HttpError | None = None

    def __init__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        self.started_at = perf_counter()
        self.scope = scope
        self.receive = receive
        self._send = send
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers = Headers(scope["headers"])

    @property
    def count_unread(self) -> CountUnread | None:
        return self.scope.get(COUNT_UNREAD)

    async def read_body(self, limit: int, seconds: float) -> bytes:
        """Return the body. Raises `HttpError` or `Disconnected`.

        The timeout starts with the first part of the body; waiting for that part is up to the HTTP server.
        """
        length = self.headers.get_bytes(b"content-length")
        if length is not None and length.isdigit() and int(length) > limit:
            raise _too_large(limit)
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            try:
                async with asyncio.timeout(seconds):
                    return await self._read_rest(body, limit)
            except TimeoutError:
                problem = ProtocolError(f"the request body did not arrive within {seconds:g} seconds")
                raise HttpError(408, problem, headers=[(b"connection", b"close")]) from None
        if len(body) > limit:
            raise _too_large(limit)
        return body

    async def _read_rest(self, begin: bytes, limit: int) -> bytes:
        chunks, size = [begin], len(begin)
        more = True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > limit:
                raise _too_large(limit)
            more = message.get("more_body", False)
        return b"".join(chunks)

    async def wait_for_disconnect(self) -> None:
        """Return when the client has disconnected, or may no longer wait."""
        recheck = self.recheck
        if recheck is None:
            await self._receive_disconnect()
            return
        while self.revoked is None:
            try:
                async with asyncio.timeout(RECHECK_SECONDS):
                    await self._receive_disconnect()
                    return
            except TimeoutError:
                self.revoked = await recheck()

    async def _receive_disconnect(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            continue

    async def send(self, message: Any) -> None:
        """Send an ASGI message."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.id:
                message = {**message, "headers": [*message["headers"], (REQUEST_ID, self.id)]}
        else:
            self._is_complete = not message.get("more_body", False)
        await self._send(message)

    async def respond(
        self, status: int, body: bytes = b"", headers: Iterable[Header] = (), *, media_type: bytes = JSON
    ) -> None:
        """Send a complete response."""
        self.status = status
        all_headers = [(b"content-length", b"%d" % len(body)), *headers]
        if body:
            all_headers.append((b"content-type", media_type))
        if self.id:
            all_headers.append((REQUEST_ID, self.id))
        await self._send({"type": "http.response.start", "status": status, "headers": all_headers})
        self._is_complete = True
        await self._send({"type": "http.response.body", "body": body})

    async def fail(self, error: HttpError, request_id: RequestId | None = None) -> None:
        """Respond with an HTTP error status and a JSON-RPC error."""
        wire_error = WireError(error.error.code, error.error.message, error.error.data)
        frame = error_frame(request_id, wire_error, null_id=True)
        if error.status != 413:
            await self.respond(error.status, frame, error.headers)
            return
        # Discard the rest of the body: if the connection were closed at once, a client that is still sending
        # would not get the response.
        headers = [(b"content-type", JSON), (b"content-length", b"%d" % len(frame)), *error.headers]
        await self.send({"type": "http.response.start", "status": error.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": frame, "more_body": True})
        left = DISCARD_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(DISCARD_SECONDS):
                while left > 0 and (message := await self.receive()).get("more_body", False):
                    left -= len(message["body"])
        await self.send({"type": "http.response.body", "body": b""})

    async def end_revoked(self) -> None:
        """Complete the response to a client that may no longer wait for it."""
        if self.status == 0 and self.revoked is not None:
            await self.fail(self.revoked)
        elif not self._is_complete:
            await self.send({"type": "http.response.body", "body": b""})


def _too_large(limit: int) -> HttpError:
    problem = InvalidRequest(f"Invalid Request: the body must have at most {limit} bytes")
    return HttpError(413, problem, headers=[(b"connection", b"close")])
