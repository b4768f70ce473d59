"""Sends a stream to a client: as one JSON response if possible, else as server-sent events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from dittybag.http.asgi_messages import (
    EVENTS,
    Header,
    Receive,
    Send,
    respond,
)
from dittybag.http.event_streams import EventStream
from dittybag.http.unread_responses import ClientResponses
from dittybag.protocol.jsonrpc import error_frame, find_request_id
from dittybag.protocol.lazy_tls import asyncio
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
        receive: Receive,
        send: Send,
        unread: ClientResponses,
        *,
        headers: Iterable[Header] = (),
        resumable: bool = False,
        primed: bool = False,
        after: int = 0,
        when_streamed: Callable[[EventStream], object] | None = None,
    ) -> None:
        """`resumable`: events have ids. `primed`: start with an empty event. `after`: the last event seen."""
        self._stream = stream
        self._receive = receive
        self._send = send
        self._unread = unread
        self._headers = tuple(headers)
        self._resumable = resumable
        self._primed = primed
        self._position = after
        self._superseded = False
        #: Called when the response becomes an event stream.
        self._when_streamed = when_streamed

    async def send_response(self, status_of: Callable[[int | None], int], *, as_json: bool) -> bool:
        """Send the response to a request. Return `False` if the client disconnected before the end."""
        stream = self._stream
        if not stream.finished:
            # Most requests finish soon and need no event stream.
            disconnected = asyncio.ensure_future(self._wait_for_disconnect())
            try:
                return await self._wait_and_send(disconnected, status_of, as_json=as_json)
            finally:
                disconnected.cancel()
        return await self._send_complete(status_of, as_json=as_json) or await self._send_events(None)

    async def _wait_and_send(
        self, disconnected: asyncio.Future[None], status_of: Callable[[int | None], int], *, as_json: bool
    ) -> bool:
        waiting = asyncio.ensure_future(self._stream.wait(0, PING_SECONDS))
        try:
            await asyncio.wait((disconnected, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if disconnected.done():
            return False
        return await self._send_complete(status_of, as_json=as_json) or await self._send_events(disconnected)

    async def _send_complete(self, status_of: Callable[[int | None], int], *, as_json: bool) -> bool:
        """Send the response in one piece if it is the only message. Return whether it was sent."""
        stream = self._stream
        frame = stream.sole_response()
        if frame is not None and (as_json or stream.error is not None):
            stream.forget_response()
            if self._unread.may_send(len(frame)):
                await respond(self._send, status_of(stream.error), frame, headers=self._headers)
            else:
                retry = (b"retry-after", b"1")
                await respond(self._send, 503, _refuse(frame), headers=(*self._headers, retry))
            return True
        if stream.finished and stream.is_empty():
            # The request was cancelled: there is no response.
            await respond(self._send, 202, headers=self._headers)
            return True
        return False

    async def follow(self) -> bool:
        """Send events until the stream ends or the client disconnects."""
        disconnected = asyncio.ensure_future(self._wait_for_disconnect())
        try:
            return await self._send_events(disconnected)
        finally:
            disconnected.cancel()

    async def _send_events(self, disconnected: asyncio.Future[None] | None) -> bool:
        stream = self._stream
        stream.attach(self)
        try:
            await self._start()
            while not await self._send_pending():
                if disconnected is None:
                    disconnected = asyncio.ensure_future(self._wait_for_disconnect())
                if not await self._wait_for_more(disconnected):
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

    async def _wait_for_more(self, disconnected: asyncio.Future[None]) -> bool:
        """Wait for events. Return `False` if the client has disconnected."""
        stream = self._stream
        if stream.is_current(self):
            waiting = asyncio.ensure_future(stream.wait(self._position, PING_SECONDS))
        else:
            waiting = asyncio.ensure_future(stream.wait_for_activity(PING_SECONDS))
        try:
            await asyncio.wait((disconnected, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if disconnected.done():
            return False
        if not waiting.result():
            await self._write(b": keep-alive\n\n")
        return True

    async def _start(self) -> None:
        if self._when_streamed is not None:
            self._when_streamed(self._stream)
        headers = [*_EVENT_HEADERS, *self._headers]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        if self._primed:
            lines = f"id: {self._stream.event_id(self._position)}\nretry: {RETRY_MS}\n"
            await self._write(lines.encode() + b"data: \n\n")
        else:
            await self._write(b"")

    def _encode_event(self, number: int, frame: bytes) -> bytes:
        id_line = f"id: {self._stream.event_id(number)}\n".encode() if self._resumable else b""
        return b"%bevent: message\ndata: %b\n\n" % (id_line, frame)

    async def _write(self, data: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def _wait_for_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            continue


def _refuse(frame: bytes) -> bytes:
    """Return the error that replaces a large response."""
    error = WireError(INTERNAL_ERROR, _TOO_MUCH_UNREAD)
    return error_frame(find_request_id(frame), error, null_id=True)
