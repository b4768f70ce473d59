"""What is said in answer to a request or to a whole session, as events that a client can come back for."""

from __future__ import annotations

from collections import deque
from typing import Final

from msgspec import Struct

from satchel.protocol.aio import asyncio

#: A stream that nobody takes from holds this much; then it is full, and the oldest events are forgotten.
MAX_EVENTS: Final = 1000
MAX_BYTES: Final = 16 * 1024 * 1024
#: From here on what a client can do without is left out.
FULL_EVENTS: Final = 256


class Event(Struct, frozen=True):
    """One message of a stream."""

    number: int
    frame: bytes


class Stream:
    """An `Outlet` whose messages wait for a connection to take them."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        #: Its last message has been said.
        self.finished = False
        #: The connection is to be closed, and the client to come back for the rest.
        self.paused = False
        #: The code of the error that it was answered with.
        self.error: int | None = None
        self._events: deque[Event] = deque()
        self._bytes = 0
        self._last = 0
        self._taken = 0
        self._news: asyncio.Future[None] | None = None

    @property
    def full(self) -> bool:
        return self._last - self._taken >= FULL_EVENTS

    @property
    def taken(self) -> int:
        """The number of the last event that a connection took."""
        return self._taken

    def message(self, frame: bytes) -> None:
        self._add(frame)
        self._wake()

    def answer(self, frame: bytes, error: int | None) -> None:
        self._add(frame)
        self.error = error
        self.finished = True
        self._wake()

    def drop(self) -> None:
        self.finished = True
        self._wake()

    def close_stream(self) -> None:
        """Close the connection; the client comes back for what is said from now on."""
        self.paused = True
        self._wake()

    def _add(self, frame: bytes) -> None:
        self._last += 1
        self._events.append(Event(self._last, frame))
        self._bytes += len(frame)
        while len(self._events) > MAX_EVENTS or (self._bytes > MAX_BYTES and len(self._events) > 1):
            self._bytes -= len(self._events.popleft().frame)

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def only_answer(self) -> bytes | None:
        """The answer, if that is all there is to say."""
        if self.finished and len(self._events) == 1 and self._last == 1:
            return self._events[0].frame
        return None

    def is_empty(self) -> bool:
        return not self._events

    def after(self, number: int) -> list[Event]:
        """The events after this one, as far as they are still known."""
        found = [event for event in self._events if event.number > number]
        if found:
            self._taken = max(self._taken, found[-1].number)
        return found

    async def wait(self, number: int, seconds: float) -> bool:
        """Wait for something new after this event; whether there is."""
        if self._last > number or self.finished or self.paused:
            return True
        self._news = asyncio.get_running_loop().create_future()
        done, _ = await asyncio.wait((self._news,), timeout=seconds)
        return bool(done)

    @property
    def size(self) -> int:
        """The bytes that it holds."""
        return self._bytes
