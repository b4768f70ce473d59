"""Sessions of the handshake revisions: which there are, and what is open of them in this process."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from satchel.protocol.dispatch import DEFAULT_LOG_LEVEL, Session
from satchel.protocol.eras import REVISIONS
from satchel.protocol.server import Server
from satchel.protocol.transports.http.messages import Asker
from satchel.protocol.transports.http.streams import MAX_BYTES, AnswerOnly, Stream
from satchel.protocol.types import JsonObject

#: So many streams of a session can be come back for.
_KEPT_STREAMS: Final = 32


class SessionState(Struct, frozen=True, kw_only=True):
    """What any process has to know of a session to answer its requests."""

    version: str
    capabilities: JsonObject
    client: JsonObject
    principal: str = ""
    log_level: str = DEFAULT_LOG_LEVEL
    #: The resources that it is told of.
    uris: tuple[str, ...] = ()


class SessionRegistry(Protocol):
    """Where sessions are kept. Processes behind one address share it."""

    async def add(self, id: str, state: SessionState) -> None: ...

    async def find(self, id: str) -> SessionState | None:
        """The session, unless it has ended or has not been used for too long."""
        ...

    async def replace(self, id: str, state: SessionState) -> None:
        """The session has changed; nothing happens if it has ended."""
        ...

    async def end(self, id: str) -> bool:
        """Whether there was such a session."""
        ...


class MemoryRegistry:
    """Sessions of one process."""

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._states: OrderedDict[str, SessionState] = OrderedDict()

    async def add(self, id: str, state: SessionState) -> None:
        self._states[id] = state
        while len(self._states) > self._most:
            # The one that has not been used for the longest time.
            self._states.popitem(last=False)

    async def find(self, id: str) -> SessionState | None:
        state = self._states.get(id)
        if state is not None:
            self._states.move_to_end(id)
        return state

    async def replace(self, id: str, state: SessionState) -> None:
        if id in self._states:
            self._states[id] = state

    async def end(self, id: str) -> bool:
        return self._states.pop(id, None) is not None


class OpenSession:
    """A session as this process has it open."""

    def __init__(self, server: Server, state: SessionState) -> None:
        #: For what belongs to no request.
        self.own = Stream(0)
        self.session = Session(server, self.own, principal=state.principal)
        self.session.open_as(REVISIONS[state.version], state.capabilities, state.client)
        self.session.subscriptions.begin()
        self._state = state
        self._take(state)
        self._streams: OrderedDict[int, Stream] = OrderedDict({0: self.own})
        self._last = 0
        #: How many connections take from its streams.
        self.connections = 0
        self.used_at = 0.0

    def asked_by(self, asker: Asker) -> None:
        """A request comes from its owner, who may do other things by now."""
        self.session.known_as(asker.grant, hears=asker.hears)

    def update(self, state: SessionState) -> None:
        """Take what other processes have changed."""
        if state != self._state:
            self._state = state
            self._take(state)

    def _take(self, state: SessionState) -> None:
        self.session.log_level = state.log_level
        self.session.subscriptions.uris = set(state.uris)

    def changed(self) -> SessionState | None:
        """What it is now, if a request has changed it."""
        uris = tuple(sorted(self.session.subscriptions.uris))
        state = replace(self._state, log_level=self.session.log_level, uris=uris)
        if state == self._state:
            return None
        self._state = state
        return state

    @property
    def is_idle(self) -> bool:
        return self.connections == 0 and self.session.is_idle()

    def new_stream(self, *, answer_only: bool) -> Stream:
        """For the answer to a request; if it takes nothing else, the rest goes to the session's own."""
        self._last += 1
        return AnswerOnly(self._last, self.own) if answer_only else Stream(self._last)

    def keep(self, stream: Stream) -> None:
        """A client may come back for this stream."""
        self._streams[stream.number] = stream
        while len(self._streams) > _KEPT_STREAMS + 1 or self._bytes() > MAX_BYTES:
            oldest = next((number for number in self._streams if number != 0), None)
            if oldest is None:
                break
            del self._streams[oldest]

    def _bytes(self) -> int:
        return sum(stream.size for stream in self._streams.values())

    def resumed(self, event_id: str) -> tuple[Stream, int] | None:
        """The stream and the number of an event that a client saw last."""
        stream, dash, number = event_id.partition("-")
        is_number = event_id.isascii() and stream.isdigit() and number.isdigit()
        if not (dash and is_number and len(event_id) < 40):
            return None
        found = self._streams.get(int(stream))
        return None if found is None else (found, int(number))

    async def close(self, grace: float) -> None:
        await self.session.close(grace)
        for stream in self._streams.values():
            stream.drop()
