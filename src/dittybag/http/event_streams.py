"""Buffered message streams of a request or a session, which a client can resume by event id."""

from __future__ import annotations

from collections import deque
from typing import Final

from msgspec import Struct

from dittybag.protocol.lazy_asyncio import asyncio

#: Maximum size of a stream without a consumer. Beyond it, the oldest events are dropped.
MAX_EVENTS: Final = 1000
MAX_BYTES: Final = 16 * 1024 * 1024
#: From this number of undelivered events on, optional messages are left out.
FULL_EVENTS: Final = 256


class StreamEvent(Struct, frozen=True):
    """A message of a stream."""

    number: int
    frame: bytes


class EventStream:
    """An `Outlet` that buffers messages until a connection consumes them."""

    # Most streams have a single message, so the defaults are class attributes.
    #: The last message has been sent.
    finished = False
    #: The connection is to be closed; the client resumes the stream later.
    paused = False
    #: The code of the error response, if it is one.
    error: int | None = None
    _bytes = 0
    _last = 0
    _delivered = 0
    _waiting: tuple[asyncio.Future[bool], ...] = ()
    #: The connected consumers, newest last. Only the newest gets events.
    _consumers: tuple[object, ...] = ()

    def __init__(self, number: int = 0, instance: str = "") -> None:
        """`instance`: tells its event ids from those of the same stream in another process."""
        self.number = number
        self._instance = instance
        self._events: deque[StreamEvent] = deque()

    @property
    def full(self) -> bool:
        return self._last - self._delivered >= FULL_EVENTS

    @property
    def delivered(self) -> int:
        """The number of the last event that was delivered to a connection."""
        return self._delivered

    def event_id(self, number: int) -> str:
        """Return the id with which a client resumes after this event."""
        return f"{self.number}-{number}-{self._instance}"

    def send_message(self, frame: bytes) -> None:
        self._add(frame)
        self.wake()

    def send_response(self, frame: bytes, error: int | None) -> None:
        self._add(frame)
        self.error = error
        self.finished = True
        self.wake()

    def drop_response(self) -> None:
        self.finished = True
        self.wake()

    def close_stream(self) -> None:
        """Close the connection. The client resumes the stream for later messages."""
        self.paused = True
        self.wake()

    def _add(self, frame: bytes) -> None:
        if self.number == 0 and not self._consumers and self._is_buffered(frame):
            # No connection yet, and the same notification is already buffered.
            return
        self._last += 1
        self._events.append(StreamEvent(self._last, frame))
        self._bytes += len(frame)
        limit = MAX_EVENTS if self._consumers or self.number else FULL_EVENTS
        while len(self._events) > limit or (self._bytes > MAX_BYTES and len(self._events) > 1):
            self._bytes -= len(self._events.popleft().frame)

    def _is_buffered(self, frame: bytes) -> bool:
        return any(event.number > self._delivered and event.frame == frame for event in self._events)

    def wake(self) -> None:
        """Wake all who wait for the stream."""
        for future in self._waiting:
            if not future.done():
                future.set_result(True)

    def attach(self, consumer: object) -> None:
        """Deliver to this consumer from now on. When it detaches, the previous one is next."""
        self._consumers = (*self._consumers, consumer)

    def detach(self, consumer: object) -> None:
        self._consumers = tuple(each for each in self._consumers if each is not consumer)
        self.wake()

    def is_current(self, consumer: object) -> bool:
        return self._consumers[-1] is consumer

    def sole_response(self) -> bytes | None:
        """Return the response if it is the only message, else `None`."""
        if self.finished and len(self._events) == 1 and self._last == 1:
            return self._events[0].frame
        return None

    def forget_response(self) -> None:
        """Forget the response, which may be large, because it is sent outside of the stream."""
        self._events.clear()
        self._bytes = 0
        self._delivered = self._last

    def is_empty(self) -> bool:
        return not self._events

    def take_after(self, number: int) -> list[StreamEvent]:
        """Return the buffered events after this number, and count them as delivered."""
        found = [event for event in self._events if event.number > number]
        if found:
            self._delivered = max(self._delivered, found[-1].number)
        return found

    async def wait(self, number: int, seconds: float) -> bool:
        """Wait for an event after this number. Return whether there may be one."""
        if self._last > number or self.finished or self.paused:
            return True
        return await self.wait_for_activity(seconds)

    async def wait_for_activity(self, seconds: float) -> bool:
        """Wait for the next message or detached consumer. Return `False` on timeout."""
        loop = asyncio.get_running_loop()
        wakeup: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(seconds, _time_out, wakeup)
        self._waiting = (*self._waiting, wakeup)
        try:
            return await wakeup
        finally:
            timer.cancel()
            self._waiting = tuple(each for each in self._waiting if each is not wakeup)

    @property
    def size(self) -> int:
        """The number of buffered bytes."""
        return self._bytes


def _time_out(wakeup: asyncio.Future[bool]) -> None:
    if not wakeup.done():
        wakeup.set_result(False)


class ResponseOnlyStream(EventStream):
    """A stream for a client that accepts only JSON. Other messages go to another stream, if there is one."""

    def __init__(self, number: int = 0, instance: str = "", other: EventStream | None = None) -> None:
        super().__init__(number, instance)
        self._other = other

    def send_message(self, frame: bytes) -> None:
        if self._other is not None:
            self._other.send_message(frame)
