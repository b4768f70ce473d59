"""Brings streams to clients: as one JSON text where that is all, otherwise as server-sent events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from dittybag.protocol.lazy_tls import asyncio
from dittybag.protocol.transports.http.asgi_messages import EVENTS, Header, Receive, Send, respond
from dittybag.protocol.transports.http.event_streams import EventStream

#: A connection on which nothing is said for so long hears a comment, so that nobody on the way closes it.
PING_SECONDS: Final = 15.0
#: How soon a client comes back for a stream whose connection was closed.
RETRY_MS: Final = 500

_EVENT_HEADERS: Final = (
    (b"content-type", EVENTS),
    (b"cache-control", b"no-cache, no-transform"),
    # Proxies would wait for more before they pass anything on.
    (b"x-accel-buffering", b"no"),
)


class ResponseDelivery:
    """One HTTP answer that carries a stream."""

    def __init__(
        self,
        stream: EventStream,
        receive: Receive,
        send: Send,
        *,
        headers: Iterable[Header] = (),
        resumable: bool = False,
        primed: bool = False,
        after: int = 0,
        when_streamed: Callable[[EventStream], object] | None = None,
    ) -> None:
        """`resumable`: events have ids. `primed`: begin with only an id. `after`: begin after this event."""
        self._stream = stream
        self._receive = receive
        self._send = send
        self._headers = tuple(headers)
        self._resumable = resumable
        self._primed = primed
        self._position = after
        self._overtaken = False
        #: Called when it becomes a stream of events.
        self._when_streamed = when_streamed

    async def answer(self, status_of: Callable[[int | None], int], *, as_json: bool) -> bool:
        """Bring the answer to a request; whether it was all brought before the client went away."""
        stream = self._stream
        if not stream.finished:
            # A moment in which most answers come: then there need be no stream.
            gone = asyncio.ensure_future(self._disconnected())
            try:
                return await self._raced(gone, status_of, as_json=as_json)
            finally:
                gone.cancel()
        return await self._whole(status_of, as_json=as_json) or await self._events(None)

    async def _raced(
        self, gone: asyncio.Future[None], status_of: Callable[[int | None], int], *, as_json: bool
    ) -> bool:
        waiting = asyncio.ensure_future(self._stream.wait(0, PING_SECONDS))
        try:
            await asyncio.wait((gone, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if gone.done():
            return False
        return await self._whole(status_of, as_json=as_json) or await self._events(gone)

    async def _whole(self, status_of: Callable[[int | None], int], *, as_json: bool) -> bool:
        """Bring the answer as it is, if it is all there is."""
        stream = self._stream
        frame = stream.only_answer()
        if frame is not None and (as_json or stream.error is not None):
            stream.after(0)
            await respond(self._send, status_of(stream.error), frame, headers=self._headers)
            return True
        if stream.finished and stream.is_empty():
            # It was cancelled: there is nothing to say.
            await respond(self._send, 202, headers=self._headers)
            return True
        return False

    async def follow(self) -> bool:
        """Bring whatever is said, until the stream ends or the client goes away."""
        gone = asyncio.ensure_future(self._disconnected())
        try:
            return await self._events(gone)
        finally:
            gone.cancel()

    async def _events(self, gone: asyncio.Future[None] | None) -> bool:
        stream = self._stream
        stream.attach(self)
        try:
            await self._begin()
            while not await self._brought_all():
                if gone is None:
                    gone = asyncio.ensure_future(self._disconnected())
                if not await self._waited(gone):
                    return False
        finally:
            stream.detach(self)
        await self._write(b"", more=False)
        return stream.finished

    async def _brought_all(self) -> bool:
        """Bring what there is; whether that was the last of it, here."""
        stream = self._stream
        if not stream.serves(self):
            self._overtaken = True
        else:
            if self._overtaken:
                # Another one was served meanwhile.
                self._position, self._overtaken = max(self._position, stream.taken), False
            for event in stream.after(self._position):
                await self._write(self._event(event.number, event.frame))
                self._position = event.number
        return stream.finished or stream.paused

    async def _waited(self, gone: asyncio.Future[None]) -> bool:
        """Wait for more; whether the client is still there."""
        stream = self._stream
        if stream.serves(self):
            waiting = asyncio.ensure_future(stream.wait(self._position, PING_SECONDS))
        else:
            waiting = asyncio.ensure_future(stream.wait_for_news(PING_SECONDS))
        try:
            await asyncio.wait((gone, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if gone.done():
            return False
        if not waiting.result():
            await self._write(b": still here\n\n")
        return True

    async def _begin(self) -> None:
        if self._when_streamed is not None:
            self._when_streamed(self._stream)
        headers = [*_EVENT_HEADERS, *self._headers]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        if self._primed:
            head = f"id: {self._stream.event_id(self._position)}\nretry: {RETRY_MS}\n"
            await self._write(head.encode() + b"data: \n\n")
        else:
            await self._write(b"")

    def _event(self, number: int, frame: bytes) -> bytes:
        name = f"id: {self._stream.event_id(number)}\n".encode() if self._resumable else b""
        return b"%bevent: message\ndata: %b\n\n" % (name, frame)

    async def _write(self, data: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def _disconnected(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            continue
