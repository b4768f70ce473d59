"""What is said in answer to a request or to a whole session, as events that a client can come back for."""

from __future__ import annotations

from collections import deque
from typing import Final

from msgspec import Struct

from dittybag.protocol.lazy_tls import asyncio

#: A stream that nobody takes from holds this much; then it is full, and the oldest events are forgotten.
MAX_EVENTS: Final = 1000
MAX_BYTES: Final = 16 * 1024 * 1024
#: From here on what a client can do without is left out.
FULL_EVENTS: Final = 256


class StreamEvent(Struct, frozen=True):
    """One message of a stream."""

    number: int
    frame: bytes


class EventStream:
    """An `Outlet` whose messages wait for a connection to take them."""

    def __init__(self, number: int = 0, mark: str = "") -> None:
        """`mark`: tells its events from those of a stream with the same number in another process."""
        self.number = number
        self._mark = mark
        #: Its last message has been said.
        self.finished = False
        #: The connection is to be closed, and the client to come back for the rest.
        self.paused = False
        #: The code of the error that it was answered with.
        self.error: int | None = None
        self._events: deque[StreamEvent] = deque()
        self._bytes = 0
        self._last = 0
        self._taken = 0
        self._waiting: set[asyncio.Future[None]] = set()
        #: Those that would take from it, the newest last: it alone is served.
        self._takers: list[object] = []

    @property
    def full(self) -> bool:
        return self._last - self._taken >= FULL_EVENTS

    @property
    def taken(self) -> int:
        """The number of the last event that a connection took."""
        return self._taken

    def event_id(self, number: int) -> str:
        """What a client says to come back after this event."""
        return f"{self.number}-{number}-{self._mark}"

    def send_message(self, frame: bytes) -> None:
        self._add(frame)
        self._wake()

    def send_response(self, frame: bytes, error: int | None) -> None:
        self._add(frame)
        self.error = error
        self.finished = True
        self._wake()

    def drop_response(self) -> None:
        self.finished = True
        self._wake()

    def close_stream(self) -> None:
        """Close the connection; the client comes back for what is said from now on."""
        self.paused = True
        self._wake()

    def _add(self, frame: bytes) -> None:
        if self.number == 0 and not self._takers and self._is_waiting(frame):
            # Nobody is there to hear it, and whoever comes hears it once.
            return
        self._last += 1
        self._events.append(StreamEvent(self._last, frame))
        self._bytes += len(frame)
        most = MAX_EVENTS if self._takers or self.number else FULL_EVENTS
        while len(self._events) > most or (self._bytes > MAX_BYTES and len(self._events) > 1):
            self._bytes -= len(self._events.popleft().frame)

    def _is_waiting(self, frame: bytes) -> bool:
        return any(event.number > self._taken and event.frame == frame for event in self._events)

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def attach(self, taker: object) -> None:
        """Serve this connection from now on, and those before it when it has gone."""
        self._takers.append(taker)

    def detach(self, taker: object) -> None:
        self._takers.remove(taker)
        self._wake()

    def serves(self, taker: object) -> bool:
        return self._takers[-1] is taker

    def only_answer(self) -> bytes | None:
        """The answer, if that is all there is to say."""
        if self.finished and len(self._events) == 1 and self._last == 1:
            return self._events[0].frame
        return None

    def is_empty(self) -> bool:
        return not self._events

    def after(self, number: int) -> list[StreamEvent]:
        """The events after this one, as far as they are still known."""
        found = [event for event in self._events if event.number > number]
        if found:
            self._taken = max(self._taken, found[-1].number)
        return found

    async def wait(self, number: int, seconds: float) -> bool:
        """Wait for something new after this event; whether there may be."""
        if self._last > number or self.finished or self.paused:
            return True
        return await self.wait_for_news(seconds)

    async def wait_for_news(self, seconds: float) -> bool:
        """Wait for whatever is said next, or for another connection to go; whether there was anything."""
        news = asyncio.get_running_loop().create_future()
        self._waiting.add(news)
        try:
            done, _ = await asyncio.wait((news,), timeout=seconds)
        finally:
            self._waiting.discard(news)
        return bool(done)

    @property
    def size(self) -> int:
        """The bytes that it holds."""
        return self._bytes


class ResponseOnlyStream(EventStream):
    """For a client that takes one JSON text: what else there is to say goes elsewhere, if anywhere."""

    def __init__(self, number: int = 0, mark: str = "", elsewhere: EventStream | None = None) -> None:
        super().__init__(number, mark)
        self._elsewhere = elsewhere

    def send_message(self, frame: bytes) -> None:
        if self._elsewhere is not None:
            self._elsewhere.send_message(frame)
