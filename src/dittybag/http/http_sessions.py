"""Sessions of the handshake revisions: the registry of all sessions, and those open in this process."""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from hashlib import sha256
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from dittybag.http.asgi_messages import ANONYMOUS, AuthInfo
from dittybag.http.event_streams import MAX_BYTES, EventStream, ResponseOnlyStream
from dittybag.protocol.dispatch import DEFAULT_LOG_LEVEL, Session
from dittybag.protocol.eras.revisions import REVISIONS
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.server import Server
from dittybag.protocol.subscriptions import LIST_KINDS, Subscriptions
from dittybag.protocol.types import JsonObject

#: Maximum number of resumable request streams per session.
_MAX_STREAMS: Final = 32


class SessionState(Struct, frozen=True, kw_only=True):
    """The state of a session that every server process needs to handle its requests."""

    version: str
    capabilities: JsonObject
    client: JsonObject
    principal: str = ""
    log_level: str = DEFAULT_LOG_LEVEL
    #: The resources that the client has subscribed to.
    uris: tuple[str, ...] = ()
    #: See `Session.selection`.
    selection: int | None = None


def merge_states(stored: SessionState, before: SessionState, after: SessionState) -> SessionState:
    """Return the stored state with the difference between `before` and `after` applied."""
    old, new = set(before.uris), set(after.uris)
    uris = set(stored.uris) - (old - new) | (new - old)
    level = stored.log_level if after.log_level == before.log_level else after.log_level
    selection = stored.selection if after.selection == before.selection else after.selection
    return replace(stored, log_level=level, uris=tuple(sorted(uris)), selection=selection)


class SessionRegistry(Protocol):
    """Stores the sessions. All server processes behind one address share it."""

    async def add(self, id: str, state: SessionState) -> None: ...

    async def find(self, id: str) -> SessionState | None:
        """Return a session, or `None` if it has ended or expired."""
        ...

    async def change(self, id: str, before: SessionState, after: SessionState) -> None:
        """Apply the difference between two states to the stored session, unless it has ended.

        Other processes may change the session at the same time.
        """
        ...

    async def end(self, id: str) -> bool:
        """End a session. Return whether it existed."""
        ...


class MemorySessionRegistry:
    """A `SessionRegistry` in memory, for a single process."""

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._states: OrderedDict[str, SessionState] = OrderedDict()

    async def add(self, id: str, state: SessionState) -> None:
        self._states[id] = state
        while len(self._states) > self._limit:
            # Drop the least recently used session.
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
    """Records every updated resource, whether the client has subscribed to it or not."""

    def __init__(self, server: Server, uris: set[str], selection: int | None) -> None:
        """`uris`: the set that gets the URIs."""
        super().__init__(server, EventStream())
        self.selection = selection
        self._uris = uris
        self._updated = asyncio.Event()
        server.add_listener(self)

    def resource_updated(self, uri: str) -> None:
        self._uris.add(uri)
        self._updated.set()

    async def wait(self, seconds: float) -> None:
        """Wait for the next update, for at most this many seconds."""
        self._updated.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._updated.wait()


def open_for_request(server: Server, outlet: EventStream, auth: AuthInfo) -> Session:
    """Return a session for one request."""
    session = Session(server, outlet, principal_id=auth.principal_id)
    session.is_temporary = True
    if auth is not ANONYMOUS:
        session.set_principal(auth.principal, receives_notifications=auth.receives_notifications)
    return session


class OpenSession:
    """A session that is open in this process."""

    def __init__(self, server: Server, id: str, state: SessionState) -> None:
        #: Part of event ids: the same session may be open in other processes with the same stream numbers.
        self._instance = os.urandom(4).hex()
        #: For messages that belong to no request.
        self.session_stream = EventStream(0, self._instance)
        self.session = Session(server, self.session_stream, principal_id=state.principal)
        # Not the id itself, which is the secret of the client.
        self.session.connection = sha256(id.encode()).hexdigest()[:32]
        self.session.is_shared = True
        self.session.apply_handshake(REVISIONS[state.version], state.capabilities, state.client)
        self.session.subscriptions.finish_handshake()
        self._state = state
        self._apply(state)
        #: Resources updated since the subscriptions of the session were last read from the registry.
        self.pending_updates: set[str] = set()
        self._streams: OrderedDict[int, EventStream] = OrderedDict({0: self.session_stream})
        self._last = 0
        #: The number of changes being saved and already saved. The registry may not yet have the former.
        self.saving = self.saved = 0
        #: The number of connections to its streams.
        self.connections = 0
        self.used_at = 0.0

    def set_auth(self, auth: AuthInfo) -> None:
        """Update the permissions of the owner, which may have changed since the last request."""
        # They are those for the default selection. Another one is checked by each request.
        is_known = self.session.selection is None or auth.principal is None
        self.session.set_principal(
            auth.principal, receives_notifications=auth.receives_notifications and is_known
        )

    def update(self, state: SessionState) -> None:
        """Apply the changes of other processes."""
        if state != self._state:
            old, self._state = self._state, state
            self._apply(state)
            for uri in self.pending_updates.intersection(state.uris).difference(old.uris):
                self.session.subscriptions.resource_updated(uri)

    def _apply(self, state: SessionState) -> None:
        self.session.log_level = state.log_level
        self.session.subscriptions.uris = set(state.uris)
        self.session.selection = state.selection

    def matches(self, state: SessionState) -> bool:
        """Return whether the registry has the same state."""
        return state == self._state

    def take_changes(self) -> tuple[SessionState, SessionState] | None:
        """Return the state before and after the last request, or `None` if it changed nothing."""
        uris = tuple(sorted(self.session.subscriptions.uris))
        before = self._state
        after = replace(before, log_level=self.session.log_level, uris=uris, selection=self.session.selection)
        if after == before:
            return None
        self._state = after
        return before, after

    @property
    def is_idle(self) -> bool:
        return self.connections == 0 and self.session.is_idle()

    def new_stream(self, *, response_only: bool) -> EventStream:
        """Return a stream for a response. With `response_only`, other messages go to the session stream."""
        self._last += 1
        if response_only:
            return ResponseOnlyStream(self._last, self._instance, self.session_stream)
        return EventStream(self._last, self._instance)

    def retain(self, stream: EventStream) -> None:
        """Keep a stream so that the client can resume it."""
        self._streams[stream.number] = stream
        while len(self._streams) > _MAX_STREAMS + 1 or self._bytes() > MAX_BYTES:
            oldest = next((number for number in self._streams if number != 0), None)
            if oldest is None:
                break
            del self._streams[oldest]

    def _bytes(self) -> int:
        return sum(stream.size for stream in self._streams.values())

    def find_event(self, event_id: str) -> tuple[EventStream, int] | None:
        """Return the stream and the number of an event id, or `None` if it is not known."""
        stream, _, rest = event_id.partition("-")
        number, _, instance = rest.partition("-")
        is_number = event_id.isascii() and stream.isdigit() and number.isdigit()
        if not (instance and is_number and len(event_id) < 40):
            return None
        if instance != self._instance:
            return self._restart_session_stream() if int(stream) == 0 else None
        found = self._streams.get(int(stream))
        return None if found is None else (found, int(number))

    def _restart_session_stream(self) -> tuple[EventStream, int]:
        """Resume the stream of another process. Its last events are unknown, so notify of everything."""
        subscriptions, after = self.session.subscriptions, self.session_stream.delivered
        for kind in LIST_KINDS:
            subscriptions.list_changed(kind)
        for uri in sorted(subscriptions.uris):
            subscriptions.resource_updated(uri)
        return self.session_stream, after

    async def close(self, grace: float) -> None:
        await self.session.close(grace)
        for stream in self._streams.values():
            stream.drop_response()
