"""Sessions of the handshake revisions: which there are, and what is open of them in this process."""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from typing import Final, Protocol, get_args

from msgspec import Struct
from msgspec.structs import replace

from dittybag.protocol.dispatch import DEFAULT_LOG_LEVEL, Session
from dittybag.protocol.eras import REVISIONS
from dittybag.protocol.lazy_tls import asyncio
from dittybag.protocol.server import ListKind, Server
from dittybag.protocol.subscriptions import Subscriptions
from dittybag.protocol.transports.http.asgi_messages import AuthInfo
from dittybag.protocol.transports.http.event_streams import MAX_BYTES, EventStream, ResponseOnlyStream
from dittybag.protocol.types import JsonObject

LIST_KINDS: Final[tuple[ListKind, ...]] = get_args(ListKind)
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


def merge_states(found: SessionState, before: SessionState, after: SessionState) -> SessionState:
    """A session as it was found, with what a request has changed from one state to another."""
    old, new = set(before.uris), set(after.uris)
    uris = set(found.uris) - (old - new) | (new - old)
    level = found.log_level if after.log_level == before.log_level else after.log_level
    return replace(found, log_level=level, uris=tuple(sorted(uris)))


class SessionRegistry(Protocol):
    """Where sessions are kept. Processes behind one address share it."""

    async def add(self, id: str, state: SessionState) -> None: ...

    async def find(self, id: str) -> SessionState | None:
        """The session, unless it has ended or has not been used for too long."""
        ...

    async def change(self, id: str, before: SessionState, after: SessionState) -> None:
        """A request has changed the session, and others may have done so at the same time.

        What differs between the two states is changed in what is kept; nothing happens if it has ended.
        """
        ...

    async def end(self, id: str) -> bool:
        """Whether there was such a session."""
        ...


class MemorySessionRegistry:
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

    async def change(self, id: str, before: SessionState, after: SessionState) -> None:
        if id in self._states:
            self._states[id] = merge_states(self._states[id], before, after)

    async def end(self, id: str) -> bool:
        return self._states.pop(id, None) is not None


class ResourceUpdates(Subscriptions):
    """Hears of every resource that changes, whether it is watched or not."""

    def __init__(self, server: Server, uris: set[str]) -> None:
        """`uris`: where they are noted."""
        super().__init__(server, EventStream())
        self._uris = uris
        self._news = asyncio.Event()
        server.add_listener(self)

    def resource_updated(self, uri: str) -> None:
        self._uris.add(uri)
        self._news.set()

    async def wait(self, seconds: float) -> None:
        """Wait for the next one, but not longer than this."""
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()


class OpenSession:
    """A session as this process has it open."""

    def __init__(self, server: Server, state: SessionState) -> None:
        #: The same session is open in other processes too, and its streams there have the same numbers.
        self._mark = os.urandom(4).hex()
        #: For what belongs to no request.
        self.own = EventStream(0, self._mark)
        self.session = Session(server, self.own, principal_id=state.principal)
        self.session.apply_handshake(REVISIONS[state.version], state.capabilities, state.client)
        self.session.subscriptions.finish_handshake()
        self._state = state
        self._take(state)
        #: Resources that have changed since other processes were asked which ones it watches.
        self.unheard: set[str] = set()
        self._streams: OrderedDict[int, EventStream] = OrderedDict({0: self.own})
        self._last = 0
        #: How many of its changes are being saved, and how many have been: what others know may lack those.
        self.saving = self.saved = 0
        #: How many connections take from its streams.
        self.connections = 0
        self.used_at = 0.0

    def asked_by(self, auth: AuthInfo) -> None:
        """A request comes from its owner, who may do other things by now."""
        self.session.set_principal(auth.principal, receives_notifications=auth.receives_notifications)

    def update(self, state: SessionState) -> None:
        """Take what other processes have changed."""
        if state != self._state:
            known, self._state = self._state, state
            self._take(state)
            for uri in self.unheard.intersection(state.uris).difference(known.uris):
                self.session.subscriptions.resource_updated(uri)

    def _take(self, state: SessionState) -> None:
        self.session.log_level = state.log_level
        self.session.subscriptions.uris = set(state.uris)

    def knows(self, state: SessionState) -> bool:
        """Whether it is as other processes know it."""
        return state == self._state

    def changed(self) -> tuple[SessionState, SessionState] | None:
        """What it was and what it is now, if a request has changed it."""
        uris = tuple(sorted(self.session.subscriptions.uris))
        before, after = self._state, replace(self._state, log_level=self.session.log_level, uris=uris)
        if after == before:
            return None
        self._state = after
        return before, after

    @property
    def is_idle(self) -> bool:
        return self.connections == 0 and self.session.is_idle()

    def new_stream(self, *, answer_only: bool) -> EventStream:
        """For the answer to a request; if it takes nothing else, the rest goes to the session's own."""
        self._last += 1
        if answer_only:
            return ResponseOnlyStream(self._last, self._mark, self.own)
        return EventStream(self._last, self._mark)

    def keep(self, stream: EventStream) -> None:
        """A client may come back for this stream."""
        self._streams[stream.number] = stream
        while len(self._streams) > _KEPT_STREAMS + 1 or self._bytes() > MAX_BYTES:
            oldest = next((number for number in self._streams if number != 0), None)
            if oldest is None:
                break
            del self._streams[oldest]

    def _bytes(self) -> int:
        return sum(stream.size for stream in self._streams.values())

    def resumed(self, event_id: str) -> tuple[EventStream, int] | None:
        """The stream and the number of an event that a client saw last."""
        stream, _, rest = event_id.partition("-")
        number, _, mark = rest.partition("-")
        is_number = event_id.isascii() and stream.isdigit() and number.isdigit()
        if not (mark and is_number and len(event_id) < 40):
            return None
        if mark != self._mark:
            return self._moved() if int(stream) == 0 else None
        found = self._streams.get(int(stream))
        return None if found is None else (found, int(number))

    def _moved(self) -> tuple[EventStream, int]:
        """Another process had the stream, and what it said last is not known here: all may have changed."""
        subscriptions, after = self.session.subscriptions, self.own.taken
        for kind in LIST_KINDS:
            subscriptions.list_changed(kind)
        for uri in sorted(subscriptions.uris):
            subscriptions.resource_updated(uri)
        return self.own, after

    async def close(self, grace: float) -> None:
        await self.session.close(grace)
        for stream in self._streams.values():
            stream.drop_response()
