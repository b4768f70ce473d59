"""Sends a stream to a client: as one JSON response if possible, else as server-sent events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final

from dittybag.http.asgi_messages import EVENTS, Header
from dittybag.http.event_streams import EventStream
from dittybag.http.http_request import HttpRequest
from dittybag.http.unread_responses import UnreadResponses
from dittybag.protocol.dispatch import Session
from dittybag.protocol.jsonrpc import Decoded, error_frame, find_request_id
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.wire_errors import INTERNAL_ERROR, WireError

#: After this long without events a comment is sent, so that proxies do not close the connection.
PING_SECONDS: Final = 15.0
#: How soon a client should resume a stream after its connection was closed.
RETRY_MS: Final = 500

_EVENT_HEADERS: Final = (
    (b"content-type", EVENTS),
    (b"cache-control", b"no-cache, no-transform"),
    # Otherwise nginx buffers the response.
    (b"x-accel-buffering", b"no"),
)

_TOO_MUCH_UNREAD: Final = (
    "The response was not sent, because too many earlier responses have not been read; read them first"
)


class ResponseDelivery:
    """An HTTP response that carries a stream."""

    def __init__(
        self,
        stream: EventStream,
        request: HttpRequest,
        unread: UnreadResponses,
        *,
        headers: Iterable[Header] = (),
        resumable: bool = False,
        primed: bool = False,
        after: int = 0,
        when_streamed: Callable[[EventStream], object] | None = None,
        respond: Callable[[int, bytes, Iterable[Header]], Awaitable[None]] | None = None,
    ) -> None:
        """`resumable`: events have ids. `primed`: start with an empty event. `after`: the last event seen.

        `respond`: sends a complete response, given its status, body and headers.
        """
        self._stream = stream
        self._request = request
        self._unread = unread.of(request.auth.principal_id, request.count_unread)
        self._headers = tuple(headers)
        self._resumable = resumable
        self._primed = primed
        self._position = after
        self._superseded = False
        #: Called when the response becomes an event stream.
        self._when_streamed = when_streamed
        self._respond = respond or request.respond
        #: Watches for a disconnect as soon as there is something to wait for.
        self._disconnected: asyncio.Future[None] | None = None

    async def send_response(self, status_of: Callable[[int | None], int], *, as_json: bool) -> bool:
        """Send the response to a request. Return `False` if the client disconnected before the end."""
        stream = self._stream
        try:
            # Most requests finish soon and need no event stream.
            if not stream.finished and await self._wait(lambda: stream.wait(0, PING_SECONDS)) is None:
                return False
            return await self._send_complete(status_of, as_json=as_json) or await self._send_events()
        finally:
            self._stop_watching()

    async def follow(self) -> bool:
        """Send events until the stream ends or the client disconnects."""
        try:
            return await self._send_events()
        finally:
            self._stop_watching()

    async def _wait(self, wait: Callable[[], Awaitable[bool]]) -> bool | None:
        """Wait for the stream. Return `False` on timeout, and `None` if the client has disconnected."""
        if self._disconnected is None:
            self._disconnected = asyncio.ensure_future(self._request.wait_for_disconnect())
            self._disconnected.add_done_callback(lambda _: self._stream.wake())
        found = False if self._disconnected.done() else await wait()
        return None if self._disconnected.done() else found

    def _stop_watching(self) -> None:
        if self._disconnected is not None:
            self._disconnected.cancel()

    async def _send_complete(self, status_of: Callable[[int | None], int], *, as_json: bool) -> bool:
        """Send the response in one piece if it is the only message. Return whether it was sent."""
        stream = self._stream
        frame = stream.sole_response()
        if frame is not None and (as_json or stream.error is not None):
            stream.forget_response()
            if self._unread.may_send(len(frame)):
                await self._respond(status_of(stream.error), frame, self._headers)
            else:
                retry = (b"retry-after", b"1")
                await self._respond(503, _refuse(frame), (*self._headers, retry))
            return True
        if stream.finished and stream.is_empty():
            # The request was cancelled: there is no response.
            await self._request.respond(202, headers=self._headers)
            return True
        return False

    async def _send_events(self) -> bool:
        stream = self._stream
        stream.attach(self)
        try:
            await self._start()
            while not await self._send_pending():
                if not await self._wait_for_more():
                    return False
        finally:
            stream.detach(self)
        await self._write(b"", more=False)
        return stream.finished

    async def _send_pending(self) -> bool:
        """Send the buffered events. Return whether this response is complete."""
        stream = self._stream
        if not stream.is_current(self):
            self._superseded = True
        else:
            if self._superseded:
                # Another connection got events in the meantime.
                self._position, self._superseded = max(self._position, stream.delivered), False
            for event in stream.take_after(self._position):
                frame = event.frame if self._unread.may_send(len(event.frame)) else _refuse(event.frame)
                await self._write(self._encode_event(event.number, frame))
                self._position = event.number
        return stream.finished or stream.paused

    async def _wait_for_more(self) -> bool:
        """Wait for events. Return `False` if the client has disconnected."""
        stream = self._stream
        if stream.is_current(self):
            found = await self._wait(lambda: stream.wait(self._position, PING_SECONDS))
        else:
            found = await self._wait(lambda: stream.wait_for_activity(PING_SECONDS))
        if found is False:
            await self._write(b": keep-alive\n\n")
        return found is not None

    async def _start(self) -> None:
        if self._when_streamed is not None:
            self._when_streamed(self._stream)
        headers = [*_EVENT_HEADERS, *self._headers]
        await self._request.send({"type": "http.response.start", "status": 200, "headers": headers})
        if self._primed:
            lines = f"id: {self._stream.event_id(self._position)}\nretry: {RETRY_MS}\n"
            await self._write(lines.encode() + b"data: \n\n")
        else:
            await self._write(b"")

    def _encode_event(self, number: int, frame: bytes) -> bytes:
        id_line = f"id: {self._stream.event_id(number)}\n".encode() if self._resumable else b""
        return b"%bevent: message\ndata: %b\n\n" % (id_line, frame)

    async def _write(self, data: bytes, *, more: bool = True) -> None:
        await self._request.send({"type": "http.response.body", "body": data, "more_body": more})


async def run_and_deliver(
    session: Session, decoded: Decoded, stream: EventStream, deliver: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Run a request in this task, and deliver its response: in another task as soon as it has to wait."""
    delivery: asyncio.Future[None] | None = None

    def deliver_meanwhile() -> None:
        nonlocal delivery
        delivery = asyncio.ensure_future(deliver())

    await session.run(decoded, stream, deliver_meanwhile)
    await (delivery or deliver())


def _refuse(frame: bytes) -> bytes:
    """Return the error that replaces a large response."""
    error = WireError(INTERNAL_ERROR, _TOO_MUCH_UNREAD)
    return error_frame(find_request_id(frame), error, null_id=True)
