"""The endpoint: POST, GET and DELETE on one address, for clients of every revision."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from dittybag.protocol.batches import expects_response
from dittybag.protocol.dispatch import Session
from dittybag.protocol.eras import HANDSHAKE_VERSIONS, REVISIONS, STATELESS_VERSIONS, V2025_03_26, V2025_11_25
from dittybag.protocol.jsonrpc import Decoded, MalformedFrame, decode, encode, request_id_of
from dittybag.protocol.lazy_tls import asyncio
from dittybag.protocol.request_meta import PROTOCOL_VERSION
from dittybag.protocol.server import Server
from dittybag.protocol.transports.http import request_headers as routing
from dittybag.protocol.transports.http.asgi_messages import (
    ANONYMOUS,
    AUTH_INFO,
    Application,
    AsgiScope,
    AuthInfo,
    CompleteResponse,
    Disconnected,
    Header,
    Headers,
    HttpError,
    Receive,
    Send,
    read_body,
    respond,
    send_error,
)
from dittybag.protocol.transports.http.event_streams import EventStream, ResponseOnlyStream
from dittybag.protocol.transports.http.http_sessions import (
    MemorySessionRegistry,
    OpenSession,
    ResourceUpdates,
    SessionRegistry,
    SessionState,
)
from dittybag.protocol.transports.http.response_delivery import ResponseDelivery
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

#: How often a process looks what others do to a session that has a stream here.
_LOOK_SECONDS: Final = 2.0

#: After a change of a resource it looks so soon: the session may have come to watch it elsewhere.
_GATHER_SECONDS: Final = 0.1

#: What a client says of itself is kept as long as its session.
_STATE_BYTES: Final = 64 * 1024

#: Errors that are errors of HTTP too; all others are answers.
_STATUS: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}


class HttpLimits(Struct, frozen=True, kw_only=True):
    """How much one client may ask of an endpoint."""

    body_bytes: int = 4 * 1024 * 1024
    body_seconds: float = 12.0
    #: Sessions that are open in this process; beyond that, those that are not used are closed.
    open_sessions: int = 10_000
    #: An open session that is not used for so long is closed; it can be opened again.
    idle_seconds: float = 1800.0
    #: GET and listen streams.
    streams: int = 1_000


class HttpEndpoint:
    """An ASGI application for one address."""

    def __init__(
        self, server: Server, *, registry: SessionRegistry | None = None, limits: HttpLimits | None = None
    ) -> None:
        self._server = server
        self._registry: SessionRegistry = registry or MemorySessionRegistry()
        self._limits = limits or HttpLimits()
        self._open: dict[str, OpenSession] = {}
        #: Sessions that last for one request, while it is under way.
        self._passing: set[Session] = set()
        self._finishing: set[asyncio.Future[None]] = set()
        self._streams = 0

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        headers, auth = Headers.from_scope(scope), scope.get(AUTH_INFO, ANONYMOUS)
        try:
            if scope["method"] == "POST":
                await self._post(headers, receive, send, auth)
            elif scope["method"] == "GET":
                await self._get(headers, receive, send, auth)
            elif scope["method"] == "DELETE":
                await self._delete(headers, send, auth)
            else:
                raise _not_allowed()
        except HttpError as refused:
            await send_error(send, refused)
        except Disconnected:
            return

    @property
    def streams(self) -> int:
        """How many streams are open."""
        return self._streams

    @property
    def sessions(self) -> int:
        """How many sessions are open here."""
        return len(self._open)

    async def close(self, grace: float) -> None:
        """End everything: `grace` seconds for what is under way."""
        sessions = [opened.close(grace) for opened in self._open.values()]
        passing = [session.close(grace) for session in self._passing]
        self._open.clear()
        await asyncio.gather(*sessions, *passing)

    # POST

    def handle_sync(
        self, headers: Headers, body: bytes, auth: AuthInfo = ANONYMOUS
    ) -> CompleteResponse | Application | None:
        """Answer a request outside of sessions here and now.

        If that takes longer, an application brings the answer. `None`: nothing was done, and the request is
        to be answered in the usual way.
        """
        manner: _Manner | None = headers.cache.get(_Manner)
        if manner is None or not manner.as_json or len(body) > self._limits.body_bytes:
            return None
        try:
            decoded = decode(body)
            begun = self._begin(decoded, headers, manner, auth)
        except (MalformedFrame, HttpError):
            return None
        if begun is None:
            return None
        if (frame := begun.stream.only_answer()) is not None:
            return begun.status_of(begun.stream.error), frame, b""

        async def rest(scope: AsgiScope, receive: Receive, send: Send) -> None:
            await self._deliver(begun, _Exchange(decoded, headers, receive, send, manner, auth=auth))

        return rest

    async def _post(self, headers: Headers, receive: Receive, send: Send, auth: AuthInfo) -> None:
        manner = headers.cache.get(_Manner) or _Manner.of(headers)
        body = await read_body(headers, receive, self._limits.body_bytes, self._limits.body_seconds)
        try:
            decoded = decode(body)
        except MalformedFrame as malformed:
            await send_error(send, HttpError(400, malformed.error), malformed.request_id)
            return
        exchange = _Exchange(decoded, headers, receive, send, manner, auth=auth)
        try:
            if (begun := self._begin(decoded, headers, manner, auth)) is not None:
                await self._deliver(begun, exchange)
            elif _is_stateless(decoded.value, manner):
                await self._listen(exchange)
            else:
                await self._handshake(exchange)
        except HttpError as refused:
            await send_error(send, refused, request_id_of(decoded.value))

    # Outside of sessions

    def _begin(self, decoded: Decoded, headers: Headers, manner: _Manner, auth: AuthInfo) -> _Begun | None:
        """Begin to answer a request that is not part of a session, nor begins one. Raises `HttpError`."""
        message = decoded.value
        if type(message) is not dict or "id" not in message or "method" not in message:
            return None
        stateless = _is_stateless(message, manner)
        if stateless:
            self._check_stateless(message, headers)
            if message["method"] == "subscriptions/listen":
                return None
        elif manner.session is not None or message["method"] == "initialize":
            return None
        stream = manner.new_stream()
        session = self._session(stream, auth)
        if not stateless:
            session.revision = REVISIONS[_version(headers) or V2025_03_26]
        session.receive_decoded(decoded, stream)
        return _Begun(session, stream, _stateless_status if stateless else _handshake_status, stateless)

    async def _deliver(self, begun: _Begun, exchange: _Exchange) -> None:
        session, stream = begun.session, begun.stream
        if stream.finished:
            await exchange.deliver(stream, begun.status_of)
            return
        self._passing.add(session)
        try:
            brought = await exchange.deliver(stream, begun.status_of)
        except BaseException:
            self._passing.discard(session)
            raise
        if brought or begun.stateless:
            # Here, to go away is to cancel.
            self._passing.discard(session)
            await session.close(0)
        else:
            ended = asyncio.ensure_future(self._finish(session))
            self._finishing.add(ended)
            ended.add_done_callback(self._finishing.discard)

    async def _finish(self, session: Session) -> None:
        """Let a request end whose client has gone: it was not cancelled."""
        await session.wait_until_idle()
        self._passing.discard(session)

    async def _listen(self, exchange: _Exchange) -> None:
        """Answer what is said without a session and is not just a request."""
        message = exchange.decoded.value
        if "id" not in message or ("method" not in message and ("result" in message or "error" in message)):
            # Whatever it is, nobody waits for an answer, and nothing is kept that it could change.
            await respond(exchange.send, 202)
            return
        self._check_stateless(message, exchange.headers)
        self._count_stream()
        stream = EventStream()
        session = self._session(stream, exchange.auth)
        self._passing.add(session)
        try:
            session.receive_decoded(exchange.decoded, stream)
            if not await exchange.deliver(stream, _stateless_status):
                session.cancel(request_id_of(message) or 0)
        finally:
            self._passing.discard(session)
            self._streams -= 1
            await session.close(0)

    def _check_stateless(self, message: JsonObject, headers: Headers) -> None:
        """Raises `HttpError` for a request that is not asked as it must be."""
        if request_id_of(message) is None or type(message.get("method")) is not str:
            raise HttpError(400, InvalidRequest("Invalid Request: a request has a method and an id"))
        if message["method"] == "initialize":
            raise HttpError(404, MethodNotFound("Method not found: initialize"))
        try:
            routing.check(message, headers, self._server)
        except ProtocolError as error:
            raise HttpError(400, error) from error

    async def _handshake(self, exchange: _Exchange) -> None:
        value = exchange.decoded.value
        if type(value) is dict and value.get("method") == "initialize" and "id" in value:
            await self._initialize(exchange)
            return
        session_id = exchange.headers.get(SESSION)
        if session_id is not None:
            await self._in_session(session_id, await self._opened(session_id, exchange.auth), exchange)
            return
        revision = REVISIONS[_version(exchange.headers) or V2025_03_26]
        if not exchange.expects_response:
            await respond(exchange.send, 202)
            return
        # A batch, or something that is no message.
        stream = exchange.manner.new_stream()
        session = self._session(stream, exchange.auth)
        session.revision = revision
        session.receive_decoded(exchange.decoded, stream)
        await self._deliver(_Begun(session, stream, _handshake_status, stateless=False), exchange)

    async def _initialize(self, exchange: _Exchange) -> None:
        stream = EventStream()
        session = self._session(stream, exchange.auth)
        session.receive_decoded(exchange.decoded, stream)
        headers: tuple[Header, ...] = ()
        if stream.error is None:
            session_id = os.urandom(16).hex()
            state = SessionState(
                version=session.revision.version,
                capabilities=session.capabilities,
                client=session.client,
                principal=session.principal_id,
            )
            if len(encode(state)) > _STATE_BYTES:
                raise HttpError(400, InvalidRequest("Invalid Request: the client says too much of itself"))
            await self._registry.add(session_id, state)
            headers = ((SESSION, session_id.encode()),)
        await session.close(0)
        await exchange.deliver(stream, _handshake_status, headers=headers)

    async def _in_session(self, session_id: str, opened: OpenSession, exchange: _Exchange) -> None:
        _version(exchange.headers)
        if not exchange.expects_response:
            opened.session.receive_decoded(exchange.decoded, opened.own)
            await respond(exchange.send, 202)
            return
        stream = opened.new_stream(answer_only=not exchange.manner.takes_events)
        opened.connections += 1
        try:
            opened.session.receive_decoded(exchange.decoded, stream)
            await self._save(session_id, opened)
            version = opened.session.revision.version
            # The client may come back for the rest: going away is not cancelling.
            await exchange.deliver(
                stream,
                _handshake_status,
                resumable=True,
                primed=version >= V2025_11_25,
                when_streamed=opened.keep,
            )
        finally:
            opened.connections -= 1

    # GET and DELETE

    async def _get(self, headers: Headers, receive: Receive, send: Send, auth: AuthInfo) -> None:
        if headers.get(routing.VERSION) in STATELESS_VERSIONS:
            raise _not_allowed()
        if not headers.accepts("text/event-stream"):
            raise HttpError(406, InvalidRequest("A stream is text/event-stream"))
        session_id = headers.get(SESSION)
        if session_id is None:
            raise _not_allowed()
        opened = await self._opened(session_id, auth)
        _version(headers)
        stream, after = opened.own, opened.own.taken
        if (last := headers.get(LAST_EVENT)) is not None:
            found = opened.resumed(last)
            if found is None:
                raise HttpError(404, InvalidRequest("The stream with this event is not known any more"))
            stream, after = found
        stream.paused = False
        self._count_stream()
        opened.connections += 1
        following = asyncio.ensure_future(self._keep_up(session_id, opened))
        try:
            primed = stream is not opened.own and opened.session.revision.version >= V2025_11_25
            delivery = ResponseDelivery(stream, receive, send, resumable=True, primed=primed, after=after)
            await delivery.follow()
        finally:
            following.cancel()
            opened.connections -= 1
            self._streams -= 1

    async def _delete(self, headers: Headers, send: Send, auth: AuthInfo) -> None:
        session_id = headers.get(SESSION)
        if headers.get(routing.VERSION) in STATELESS_VERSIONS or session_id is None:
            raise _not_allowed()
        state = await self._registry.find(session_id)
        if state is None or state.principal != auth.principal_id or not await self._registry.end(session_id):
            raise _no_session()
        opened = self._open.pop(session_id, None)
        if opened is not None:
            await opened.close(0)
        await respond(send, 204)

    # Sessions

    def _session(self, outlet: EventStream, auth: AuthInfo) -> Session:
        """A session for one request."""
        if auth is ANONYMOUS:
            return Session(self._server, outlet)
        session = Session(self._server, outlet, principal_id=auth.principal_id)
        session.set_principal(auth.principal, receives_notifications=auth.receives_notifications)
        return session

    async def _opened(self, session_id: str, auth: AuthInfo) -> OpenSession:
        """A session of whoever asks. Somebody else's is as good as none."""
        state = await self._found(session_id)
        if state is not None and state.principal != auth.principal_id:
            raise _no_session()
        if state is None:
            if (ended := self._open.pop(session_id, None)) is not None:
                await ended.close(0)
            raise _no_session()
        now = asyncio.get_running_loop().time()
        opened = self._open.get(session_id)
        if opened is None:
            await self._make_room(now)
            # Another request of the session may have opened it meanwhile.
            opened = self._open.get(session_id)
        if opened is None:
            opened = self._open[session_id] = OpenSession(self._server, state)
        opened.asked_by(auth)
        opened.used_at = now
        return opened

    async def _found(self, session_id: str) -> SessionState | None:
        """The session as all know it; what is open of it here takes over what others have changed."""
        opened = self._open.get(session_id)
        saved = 0 if opened is None else opened.saved
        state = await self._registry.find(session_id)
        if opened is not None and state is not None and not opened.saving and opened.saved == saved:
            opened.update(state)
        return state

    async def _save(self, session_id: str, opened: OpenSession) -> None:
        """Let all know what a request has changed."""
        if (changed := opened.changed()) is not None:
            opened.saving += 1
            try:
                await self._registry.change(session_id, *changed)
            finally:
                opened.saving -= 1
                opened.saved += 1

    async def _keep_up(self, session_id: str, opened: OpenSession) -> None:
        """Follow what other processes do to a session that has a stream here."""
        updates = ResourceUpdates(self._server, opened.unheard)
        try:
            while True:
                unheard = opened.unheard.copy()
                try:
                    state = await self._found(session_id)
                except HttpError:
                    # It cannot be found out now; the next look tells.
                    await asyncio.sleep(_LOOK_SECONDS)
                    continue
                if state is None:
                    break
                if opened.knows(state):
                    opened.unheard -= unheard
                if not opened.unheard:
                    await updates.wait(_LOOK_SECONDS)
                await asyncio.sleep(_GATHER_SECONDS)
        finally:
            updates.close()
        self._open.pop(session_id, None)
        await opened.close(0)

    async def _make_room(self, now: float) -> None:
        """Close sessions that are not used: they can be opened again."""
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
            raise _busy("Too many sessions are in use")

    def _count_stream(self) -> None:
        if self._streams >= self._limits.streams:
            raise _busy("Too many streams are open")
        self._streams += 1


class _Manner(Struct, frozen=True):
    """What the headers of a POST request say: how it wants to be answered, and what it belongs to."""

    as_json: bool
    takes_events: bool
    session: str | None
    names_stateless: bool

    @classmethod
    def of(cls, headers: Headers) -> _Manner:
        """Raises `HttpError` if the request is none for this endpoint."""
        kind = headers.get(b"content-type") or ""
        if kind.partition(";")[0].strip().lower() != "application/json":
            raise HttpError(415, InvalidRequest("The body of a request is application/json"))
        manner = cls(
            headers.accepts("application/json"),
            headers.accepts("text/event-stream"),
            headers.get(SESSION),
            headers.get(routing.VERSION) in STATELESS_VERSIONS,
        )
        if not manner.as_json and not manner.takes_events:
            raise HttpError(406, InvalidRequest("Answers are application/json or text/event-stream"))
        headers.cache[cls] = manner
        return manner

    def new_stream(self) -> EventStream:
        """Where the answer goes."""
        return EventStream() if self.takes_events else ResponseOnlyStream()


def _is_stateless(value: Any, manner: _Manner) -> bool:
    """The body decides; the header only where the body says nothing."""
    if type(value) is not dict:
        return False
    params = value.get("params")
    meta = params.get("_meta") if type(params) is dict else None
    return (type(meta) is dict and PROTOCOL_VERSION in meta) or manner.names_stateless


class _Begun(Struct, frozen=True):
    """A request outside of sessions that is being answered."""

    session: Session
    stream: EventStream
    #: The status of HTTP for the code of an error.
    status_of: Callable[[int | None], int]
    stateless: bool


class _Exchange:
    """A POST request whose body is JSON, and the way back."""

    __slots__ = ("_receive", "auth", "decoded", "headers", "manner", "send")

    def __init__(
        self,
        decoded: Decoded,
        headers: Headers,
        receive: Receive,
        send: Send,
        manner: _Manner,
        *,
        auth: AuthInfo,
    ) -> None:
        self.auth = auth
        self.decoded = decoded
        self.headers = headers
        self.send = send
        self.manner = manner
        self._receive = receive

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
        """Bring the answer to the client; whether all of it was brought."""
        if self.manner.as_json and (frame := stream.only_answer()) is not None:
            await respond(self.send, status_of(stream.error), frame, headers=headers)
            return True
        delivery = ResponseDelivery(
            stream,
            self._receive,
            self.send,
            headers=headers,
            resumable=resumable,
            primed=primed,
            when_streamed=when_streamed,
        )
        return await delivery.answer(status_of, as_json=self.manner.as_json)


def _stateless_status(error: int | None) -> int:
    return 200 if error is None else _STATUS.get(error, 200)


def _handshake_status(error: int | None) -> int:
    return 400 if error in (PARSE_ERROR, INVALID_REQUEST) else 200


def _version(headers: Headers) -> str | None:
    """The revision that a request of a handshake era names. Raises `HttpError`."""
    version = headers.get(routing.VERSION)
    if version is not None and version not in HANDSHAKE_VERSIONS:
        supported = ", ".join(HANDSHAKE_VERSIONS)
        raise HttpError(400, InvalidRequest(f"Unsupported protocol version; supported: {supported}"))
    return version


def _busy(problem: str) -> HttpError:
    return HttpError(503, InvalidRequest(problem), headers=[(b"retry-after", b"5")])


def _not_allowed() -> HttpError:
    allowed = (b"allow", b"POST, GET, DELETE")
    return HttpError(405, InvalidRequest("This method is not allowed here"), headers=[allowed])


def _no_session() -> HttpError:
    return HttpError(404, InvalidRequest("There is no such session (any more); initialize a new one"))
