"""The MCP endpoint: POST, GET and DELETE at one path, for clients of every revision."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from dittybag.http import request_headers as routing
from dittybag.http.asgi_messages import AuthInfo, Header, Headers, HttpError, accepts, header_text
from dittybag.http.event_streams import EventStream, ResponseOnlyStream
from dittybag.http.http_request import HttpRequest
from dittybag.http.http_sessions import (
    MemorySessionRegistry,
    OpenSession,
    ResourceUpdates,
    SessionRegistry,
    SessionState,
    open_for_request,
)
from dittybag.http.response_delivery import ResponseDelivery, run_and_deliver
from dittybag.http.unread_responses import LARGE_BYTES, UnreadResponses
from dittybag.protocol.batches import expects_response
from dittybag.protocol.dispatch import Session
from dittybag.protocol.eras.revisions import REVISIONS, Revision
from dittybag.protocol.eras.versions import (
    HANDSHAKE_VERSIONS,
    STATELESS_VERSIONS,
    V2025_03_26,
    V2025_11_25,
)
from dittybag.protocol.frame_decoding import decode_in_thread
from dittybag.protocol.jsonrpc import LONG_BYTES, Decoded, MalformedFrame, decode, encode, request_id_of
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.request_meta import PROTOCOL_VERSION
from dittybag.protocol.server import Server
from dittybag.protocol.types import JsonObject
from dittybag.protocol.wire_errors import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    InvalidRequest,
    MethodNotFound,
    ProtocolError,
)

SESSION: Final = b"mcp-session-id"
LAST_EVENT: Final = b"last-event-id"

#: How often a process checks for changes of other processes to a session with a stream here.
_POLL_SECONDS: Final = 2.0

#: How soon it checks after a resource update: another process may have added the subscription.
_DEBOUNCE_SECONDS: Final = 0.1

#: Maximum size of a stored session: the client's own description is stored with it.
_MAX_STATE_BYTES: Final = 64 * 1024

#: JSON-RPC errors with an HTTP error status. All others are sent with status 200.
_STATUS: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}


class HttpLimits(Struct, frozen=True, kw_only=True):
    """The resource limits of an endpoint."""

    body_seconds: float = 12.0
    #: Maximum number of sessions open in this process. Beyond it, idle sessions are closed.
    open_sessions: int = 10_000
    #: An open session is closed after this idle time. The client can still use it: it is opened again.
    idle_seconds: float = 1800.0
    #: Maximum number of GET and `subscriptions/listen` streams.
    streams: int = 1_000


class HttpEndpoint:
    """The MCP endpoint of one server: the last middleware of its path."""

    def __init__(
        self,
        server: Server,
        *,
        registry: SessionRegistry | None = None,
        limits: HttpLimits | None = None,
        unread: UnreadResponses | None = None,
    ) -> None:
        self._server = server
        self._unread = unread or UnreadResponses()
        self._registry: SessionRegistry = registry or MemorySessionRegistry()
        self._limits = limits or HttpLimits()
        self._open: dict[str, OpenSession] = {}
        #: Sessions of single running requests.
        self._temporary: set[Session] = set()
        self._streams = 0

    def __call__(self, request: HttpRequest) -> Awaitable[bool]:
        if request.method == "POST":
            return self._post(request)
        if request.method == "GET":
            return self._get(request)
        if request.method == "DELETE":
            return self._delete(request)
        raise _not_allowed()

    @property
    def streams(self) -> int:
        """The number of open streams."""
        return self._streams

    @property
    def sessions(self) -> int:
        """The number of sessions open in this process."""
        return len(self._open)

    async def close(self, grace: float) -> None:
        """Close all sessions. Running requests get `grace` seconds to finish."""
        sessions = [opened.close(grace) for opened in self._open.values()]
        temporary = [session.close(grace) for session in self._temporary]
        self._open.clear()
        await asyncio.gather(*sessions, *temporary)

    # POST

    async def _post(self, request: HttpRequest) -> bool:
        options = _options_of(request.headers)
        body = await request.read_body(self._server.limits.message_bytes, self._limits.body_seconds)
        try:
            decoded = decode(body) if len(body) <= LONG_BYTES else await decode_in_thread(body)
        except MalformedFrame as malformed:
            await request.fail(HttpError(400, malformed.error), malformed.request_id)
            return True
        return await self.post_decoded(request, decoded, options)

    async def post_decoded(
        self, request: HttpRequest, decoded: Decoded, options: _PostOptions | None = None
    ) -> bool:
        """Handle a POST request whose body has already been read and decoded."""
        options = options or _options_of(request.headers)
        try:
            await self._choose_handler(_PostRequest(request, decoded, options, self._unread))
        except HttpError as error:
            await request.fail(error, request_id_of(decoded.value))
        return True

    def _choose_handler(self, post: _PostRequest) -> Awaitable[None]:
        """Return what handles a message. Raises `HttpError`."""
        message, options, headers = post.decoded.value, post.options, post.request.headers
        is_stateless = _is_stateless(message, options)
        if is_stateless and post.expects_response:
            self._check_stateless(message, headers)
            if message["method"] == "subscriptions/listen":
                return self._listen(post)
            return self._run(post, None)
        if not is_stateless:
            if type(message) is dict and message.get("method") == "initialize" and "id" in message:
                return self._initialize(post)
            if (session_id := headers.get(SESSION)) is not None:
                return self._post_in_session(session_id, post)
            revision = REVISIONS[_handshake_version(headers) or V2025_03_26]
            if post.expects_response:
                return self._run(post, revision)
        # Without a session, a notification or response has no effect.
        return post.request.respond(202)

    # Outside of sessions

    async def _run(self, post: _PostRequest, revision: Revision | None) -> None:
        """Run a request outside of sessions. `revision`: `None` if it is stateless."""
        stream = post.options.new_stream()
        session = open_for_request(self._server, stream, post.request.auth)
        if revision is not None:
            session.revision = revision
        status_of = _stateless_status if revision is None else _handshake_status

        async def deliver() -> None:
            delivered = await post.deliver(stream, status_of)
            if not delivered and revision is None:
                # Only in the stateless revision is a disconnect a cancellation.
                session.cancel(request_id_of(post.decoded.value) or 0)
            elif not delivered:
                _abandon(session, post.decoded.value)

        self._temporary.add(session)
        try:
            await run_and_deliver(session, post.decoded, stream, deliver)
            if not session.is_idle():
                # A batch runs in tasks of its own, and goes on after a disconnect.
                await session.wait_until_idle()
        finally:
            self._temporary.discard(session)

    async def _listen(self, post: _PostRequest) -> None:
        """Handle a `subscriptions/listen` request."""
        self._reserve_stream()
        stream = EventStream()
        session = open_for_request(self._server, stream, post.request.auth)
        self._temporary.add(session)
        try:
            session.receive_decoded(post.decoded, stream)
            if not await post.deliver(stream, _stateless_status):
                session.cancel(request_id_of(post.decoded.value) or 0)
        finally:
            self._temporary.discard(session)
            self._streams -= 1
            await session.close(0)

    def _check_stateless(self, message: JsonObject, headers: Headers) -> None:
        """Raises `HttpError` if a stateless request is not valid."""
        if request_id_of(message) is None or type(message.get("method")) is not str:
            raise HttpError(
                400, InvalidRequest("Invalid Request: a request must have a `method` and an `id`")
            )
        if message["method"] == "initialize":
            raise HttpError(404, MethodNotFound("Method not found: initialize"))
        try:
            routing.check(message, headers, self._server)
        except ProtocolError as error:
            raise HttpError(400, error) from error

    async def _initialize(self, post: _PostRequest) -> None:
        stream = EventStream()
        session = open_for_request(self._server, stream, post.request.auth)
        session.receive_decoded(post.decoded, stream)
        headers: tuple[Header, ...] = ()
        if stream.error is None:
            session_id = os.urandom(16).hex()
            state = SessionState(
                version=session.revision.version,
                capabilities=session.capabilities,
                client=session.client,
                principal=session.principal_id,
            )
            if len(encode(state)) > _MAX_STATE_BYTES:
                raise HttpError(
                    400,
                    InvalidRequest("Invalid Request: `clientInfo` and `capabilities` are larger than 64 KiB"),
                )
            await self._registry.add(session_id, state)
            headers = ((SESSION, session_id.encode()),)
        await session.close(0)
        await post.deliver(stream, _handshake_status, headers=headers)

    async def _post_in_session(self, session_id: str, post: _PostRequest) -> None:
        opened = await self._open_session(session_id, post.request.auth)
        _handshake_version(post.request.headers)
        if not post.expects_response:
            opened.session.receive_decoded(post.decoded, opened.session_stream)
            await post.request.respond(202)
            return
        stream = opened.new_stream(response_only=not post.options.accepts_events)

        async def deliver() -> None:
            await self._save(session_id, opened)
            version = opened.session.revision.version
            # A disconnect is not a cancellation: the client may resume the stream. Only what waits is ended.
            delivered = await post.deliver(
                stream,
                _handshake_status,
                resumable=True,
                primed=version >= V2025_11_25,
                when_streamed=opened.retain,
            )
            if not delivered:
                _abandon(opened.session, post.decoded.value)

        opened.connections += 1
        try:
            await run_and_deliver(opened.session, post.decoded, stream, deliver)
        finally:
            opened.connections -= 1

    # GET and DELETE

    async def _get(self, request: HttpRequest) -> bool:
        headers = request.headers
        if headers.get(routing.VERSION) in STATELESS_VERSIONS:
            raise _not_allowed()
        if not accepts(header_text(headers.joined(b"accept")), "text/event-stream"):
            raise HttpError(406, InvalidRequest("The Accept header must allow text/event-stream"))
        session_id = headers.get(SESSION)
        if session_id is None:
            raise _not_allowed()
        opened = await self._open_session(session_id, request.auth)
        _handshake_version(headers)
        stream, after = opened.session_stream, opened.session_stream.delivered
        if (last := headers.get(LAST_EVENT)) is not None:
            found = opened.find_event(last)
            if found is None:
                raise HttpError(404, InvalidRequest("The stream with this event is no longer known"))
            stream, after = found
        stream.paused = False
        self._reserve_stream()
        opened.connections += 1
        following = asyncio.ensure_future(self._follow_changes(session_id, opened))
        try:
            primed = stream is not opened.session_stream and opened.session.revision.version >= V2025_11_25
            delivery = ResponseDelivery(
                stream, request, self._unread, resumable=True, primed=primed, after=after
            )
            await delivery.follow()
        finally:
            following.cancel()
            opened.connections -= 1
            self._streams -= 1
        return True

    async def _delete(self, request: HttpRequest) -> bool:
        headers = request.headers
        session_id = headers.get(SESSION)
        if headers.get(routing.VERSION) in STATELESS_VERSIONS or session_id is None:
            raise _not_allowed()
        state = await self._registry.find(session_id)
        if state is None or state.principal != request.auth.principal_id:
            raise _unknown_session()
        if not await self._registry.end(session_id):
            raise _unknown_session()
        opened = self._open.pop(session_id, None) or OpenSession(self._server, session_id, state)
        opened.set_auth(request.auth)
        await opened.close(0)
        await self._server.on_end(opened.session)
        await request.respond(204)
        return True

    # Sessions

    async def _open_session(self, session_id: str, auth: AuthInfo) -> OpenSession:
        """Return a session of this principal, opened if necessary. Raises `HttpError`."""
        state = await self._refresh(session_id)
        if state is not None and state.principal != auth.principal_id:
            raise _unknown_session()
        if state is None:
            if (ended := self._open.pop(session_id, None)) is not None:
                await ended.close(0)
            raise _unknown_session()
        now = asyncio.get_running_loop().time()
        opened = self._open.get(session_id)
        if opened is None:
            await self._make_room(now)
            # Another request may have opened it in the meantime.
            opened = self._open.get(session_id)
        if opened is None:
            opened = self._open[session_id] = OpenSession(self._server, session_id, state)
        opened.set_auth(auth)
        opened.used_at = now
        return opened

    async def _refresh(self, session_id: str) -> SessionState | None:
        """Return a session from the registry, and apply the changes of other processes to it."""
        opened = self._open.get(session_id)
        saved = 0 if opened is None else opened.saved
        state = await self._registry.find(session_id)
        if opened is not None and state is not None and not opened.saving and opened.saved == saved:
            opened.update(state)
        return state

    async def _save(self, session_id: str, opened: OpenSession) -> None:
        """Save the changes of a request in the registry."""
        if (changes := opened.take_changes()) is not None:
            opened.saving += 1
            try:
                await self._registry.change(session_id, *changes)
            finally:
                opened.saving -= 1
                opened.saved += 1

    async def _follow_changes(self, session_id: str, opened: OpenSession) -> None:
        """Apply the changes of other processes to a session while it has a stream here."""
        updates = ResourceUpdates(self._server, opened.pending_updates, opened.session.selection)
        try:
            while True:
                pending_updates = opened.pending_updates.copy()
                try:
                    state = await self._refresh(session_id)
                    updates.selection = opened.session.selection
                except HttpError:
                    # The registry cannot be read now; try again later.
                    await asyncio.sleep(_POLL_SECONDS)
                    continue
                if state is None:
                    break
                if opened.matches(state):
                    opened.pending_updates -= pending_updates
                if not opened.pending_updates:
                    await updates.wait(_POLL_SECONDS)
                await asyncio.sleep(_DEBOUNCE_SECONDS)
        finally:
            updates.close()
        self._open.pop(session_id, None)
        await opened.close(0)

    async def _make_room(self, now: float) -> None:
        """Close idle sessions, which can be opened again. Raises `HttpError` if all are in use."""
        limit = self._limits
        idle = [
            session_id
            for session_id, opened in self._open.items()
            if opened.is_idle
            and (len(self._open) >= limit.open_sessions or now - opened.used_at > limit.idle_seconds)
        ]
        for session_id in idle:
            await self._open.pop(session_id).close(0)
        if len(self._open) >= limit.open_sessions:
            raise _busy("Too many sessions are in use; try again later")

    def _reserve_stream(self) -> None:
        if self._streams >= self._limits.streams:
            raise _busy("Too many streams are open; try again later")
        self._streams += 1


class _PostOptions(Struct, frozen=True):
    """The headers of a POST request that select how it is handled."""

    accepts_json: bool
    accepts_events: bool
    #: The version header names a stateless revision.
    is_stateless: bool

    def new_stream(self) -> EventStream:
        """Return a stream for the response."""
        return EventStream() if self.accepts_events else ResponseOnlyStream()


@lru_cache(64)
def _read_options(content_type: bytes | None, accept: bytes, version: bytes | None) -> _PostOptions:
    """Return the options of a request with these headers. Raises `HttpError` if they are not supported."""
    if (content_type or b"").partition(b";")[0].strip().lower() != b"application/json":
        raise HttpError(415, InvalidRequest("The Content-Type must be application/json"))
    accepted = header_text(accept)
    options = _PostOptions(
        accepts(accepted, "application/json"),
        accepts(accepted, "text/event-stream"),
        version is not None and header_text(version) in STATELESS_VERSIONS,
    )
    if not options.accepts_json and not options.accepts_events:
        raise HttpError(
            406, InvalidRequest("The Accept header must allow application/json or text/event-stream")
        )
    return options


def _options_of(headers: Headers) -> _PostOptions:
    """Raises `HttpError` if the media types are not supported."""
    return _read_options(
        headers.get_bytes(b"content-type"), headers.joined(b"accept"), headers.get_bytes(routing.VERSION)
    )


def _is_stateless(value: Any, options: _PostOptions) -> bool:
    """Return whether a message is stateless. The version in the body takes precedence over the header."""
    if type(value) is not dict:
        return False
    params = value.get("params")
    meta = params.get("_meta") if type(params) is dict else None
    return (type(meta) is dict and PROTOCOL_VERSION in meta) or options.is_stateless


class _PostRequest:
    """A POST request with a decoded body."""

    __slots__ = ("_unread", "decoded", "options", "request")

    def __init__(
        self, request: HttpRequest, decoded: Decoded, options: _PostOptions, unread: UnreadResponses
    ) -> None:
        self.request = request
        self.decoded = decoded
        self.options = options
        self._unread = unread

    @property
    def expects_response(self) -> bool:
        value = self.decoded.value
        if type(value) is list:
            return any(map(expects_response, value)) or not value
        return expects_response(value)

    async def deliver(
        self,
        stream: EventStream,
        status_of: Callable[[int | None], int],
        *,
        headers: tuple[Header, ...] = (),
        resumable: bool = False,
        primed: bool = False,
        when_streamed: Callable[[EventStream], object] | None = None,
    ) -> bool:
        """Send the response. Return `False` if the client disconnected before the end."""
        frame = stream.sole_response()
        if self.options.accepts_json and frame is not None and len(frame) <= LARGE_BYTES:
            await self.request.respond(status_of(stream.error), frame, headers)
            return True
        delivery = ResponseDelivery(
            stream,
            self.request,
            self._unread,
            headers=headers,
            resumable=resumable,
            primed=primed,
            when_streamed=when_streamed,
        )
        return await delivery.send_response(status_of, as_json=self.options.accepts_json)


def _stateless_status(error: int | None) -> int:
    return 200 if error is None else _STATUS.get(error, 200)


def _handshake_status(error: int | None) -> int:
    return 400 if error in (PARSE_ERROR, INVALID_REQUEST) else 200


def _abandon(session: Session, value: Any) -> None:
    """Fail the requests of a message that wait, because nobody reads their responses."""
    for message in value if type(value) is list else (value,):
        if (request_id := request_id_of(message)) is not None:
            session.abandon(request_id)


def _handshake_version(headers: Headers) -> str | None:
    """Return the handshake revision that a request names, or `None`. Raises `HttpError`."""
    version = headers.get(routing.VERSION)
    if version is not None and version not in HANDSHAKE_VERSIONS:
        supported = ", ".join(HANDSHAKE_VERSIONS)
        raise HttpError(400, InvalidRequest(f"Unsupported protocol version; supported: {supported}"))
    return version


def _busy(message: str) -> HttpError:
    return HttpError(503, InvalidRequest(message), headers=[(b"retry-after", b"5")])


def _not_allowed() -> HttpError:
    allowed = (b"allow", b"POST, GET, DELETE")
    return HttpError(405, InvalidRequest("This HTTP method is not allowed here"), headers=[allowed])


def _unknown_session() -> HttpError:
    return HttpError(404, InvalidRequest("The session does not exist or has ended; initialize a new one"))
