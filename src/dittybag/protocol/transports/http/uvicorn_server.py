"""An ASGI application on a socket: uvicorn, with the deadlines that it does not have."""

from __future__ import annotations

import signal
import socket
import sys
from asyncio import AbstractEventLoop, TimerHandle, Transport, get_running_loop
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, Final

import uvicorn
from msgspec import Struct
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from dittybag.protocol import eager_tasks
from dittybag.protocol.transports.http.asgi_messages import (
    HEADERS,
    Application,
    AsgiScope,
    Headers,
    SyncHandler,
)

#: A request's head has this long to arrive, from the connection or its first byte on.
HEAD_SECONDS: Final = 10
#: So much of a request may come that is no body.
HEAD_BYTES: Final = 64 * 1024
#: A request's body has this long, whoever reads it.
BODY_SECONDS: Final = 14
#: A client that takes nothing of what it asked for within this time is let go.
WRITE_SECONDS: Final = 30
#: A connection without a request is kept for so long.
KEEP_ALIVE_SECONDS: Final = 30
#: An answer that is longer goes out beside its head, not joined with it.
LONG_BYTES: Final = 64 * 1024
#: So many heads of requests are known again on a connection, if they are no longer than this.
KNOWN_HEADS: Final = 16
KNOWN_BYTES: Final = 2048
#: How long what is under way may take when the server ends.
GRACE_SECONDS: Final = 5
BACKLOG: Final = 2048


class _Head(Struct, frozen=True):
    """A head that has come before: what it says, and how long the body is that comes with it."""

    url: bytes
    scope: dict[str, Any]
    length: int


class _AsBefore:
    """Stands in for the parser where a head is known: nothing was parsed."""

    def get_http_version(self) -> str:
        return "1.1"

    def get_method(self) -> bytes:
        return b"POST"

    def should_upgrade(self) -> bool:
        return False

    def should_keep_alive(self) -> bool:
        return True


_AS_BEFORE: Final[Any] = _AsBefore()


class _Connection(HttpToolsProtocol):
    """A connection that has to come to the point, and that answers at once where nobody has to wait."""

    #: What answers POST requests to an address without a task, if nobody has to wait.
    sync_handlers: Mapping[bytes, SyncHandler] = {}

    _deadline: TimerHandle | None = None
    _unread: TimerHandle | None = None
    #: Closes the connection when it is not used any more.
    _idle: TimerHandle | None = None
    _answered_at = 0.0
    _head_bytes = 0
    #: What is awaited now has so many seconds, and the deadline is for this many.
    _patience: float | None = None
    _allowed: float | None = None
    #: The request that is coming in, as long as it may come in one piece, and what has come of its body.
    _held: list[bytes] | None = None
    #: The last request that came in one piece.
    _last: dict[str, Any] | None = None
    #: Requests that have come on this connection and may not have been answered.
    _cycles: tuple[RequestResponseCycle, ...] = ()

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        #: A client's heads are the same again and again.
        self._heads: dict[bytes, _Head] = {}
        self._patience = HEAD_SECONDS
        self._keep_time()

    def data_received(self, data: bytes) -> None:
        begins = self._patience is None
        if begins and self._heads and self._is_known(data):
            return
        self._head_bytes += len(data)
        super().data_received(data)
        if self._last is not None:
            if begins:
                self._remember(data, self._last)
            self._last = None
        if self._held is not None:
            self._hand_over()
        if self._patience is not self._allowed:
            self._keep_time()
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.transport.abort()

    def _is_known(self, data: bytes) -> bool:
        """Answer a request whose head is known, without parsing it again; whether it is one."""
        end = data.find(b"\r\n\r\n", 0, KNOWN_BYTES) + 4
        head = self._heads.get(data[:end])
        if head is None or len(data) - end != head.length or not self._is_free():
            return False
        self._unset_keepalive_if_required()
        body = data[end:]
        answer = self.sync_handlers[head.url](head.scope[HEADERS], body)
        if type(answer) is tuple:
            status, content, more = answer
            first = b"%bcontent-type: application/json\r\n%bcontent-length: %d\r\n\r\n" % (
                STATUS_LINE[status],
                more,
                len(content),
            )
            self.write(first, content)
            self.answered(keep_alive=True)
            return True
        parser: Any = self.parser
        self.parser = _AS_BEFORE
        try:
            self.url, self.headers = head.url, head.scope["headers"]
            _Immediate(self, answer or self.app, head.scope.copy(), body).run()
        finally:
            self.parser = parser
        return True

    def _remember(self, data: bytes, scope: dict[str, Any]) -> None:
        """Know a head again, if it was all there was before one body of the length that it says."""
        end = data.find(b"\r\n\r\n", 0, KNOWN_BYTES) + 4
        length = len(data) - end
        is_alone = self._patience is None and scope["headers"].count((b"content-length", b"%d" % length)) == 1
        if end > 4 and is_alone and self.parser.should_keep_alive() and not self.transport.is_closing():
            if len(self._heads) >= KNOWN_HEADS:
                self._heads.clear()
            self._heads[data[:end]] = _Head(self.url, scope, length)

    # The parser calls these.

    def on_message_begin(self) -> None:
        self.url = b""
        self.headers = []
        self._patience = HEAD_SECONDS

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._patience = BODY_SECONDS
        self._held = []
        may_wait = self.url not in self.sync_handlers or self.parser.get_method() != b"POST"
        if may_wait or self.parser.should_upgrade() or not self._is_free():
            self._hand_over()

    def on_body(self, body: bytes) -> None:
        # What is counted is what came after the last complete request and is no body.
        self._head_bytes = 0
        if self._held is not None:
            self._held.append(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        self._patience = None
        if self._held is not None:
            body, self._held = b"".join(self._held), None
            scope = self._last = _scope_of(self)
            _Immediate(self, self.app, scope.copy(), body).run()
        else:
            super().on_message_complete()

    def _is_free(self) -> bool:
        """Whether an answer may be written at once: no other comes before it, and the client keeps up."""
        cycle: RequestResponseCycle | None = self.cycle
        return (
            (cycle is None or cycle.response_complete)
            and not self.flow.write_paused
            and not self.transport.is_closing()
        )

    def _hand_over(self) -> None:
        """Have the request answered in a task of its own, whenever the rest of it comes."""
        begun, self._held = self._held or [], None
        self.start_task(self.app)
        for piece in begun:
            super().on_body(piece)

    def start_task(self, app: Any) -> None:
        """Have an application answer the request whose head has come."""
        url, headers = self.url, self.headers
        super().on_message_begin()
        self.url, self.headers, self.scope["headers"] = url, headers, headers
        self.expect_100_continue = (b"expect", b"100-continue") in headers
        own, self.app = self.app, app
        try:
            super().on_headers_complete()
        finally:
            self.app = own
        self._cycles = (*(cycle for cycle in self._cycles if not cycle.response_complete), self.cycle)

    def end_message(self) -> None:
        """All of a request has come that is answered in a task."""
        super().on_message_complete()

    def write(self, head: bytes, content: bytes) -> None:
        """Write an answer in one piece. What is long is not copied for that."""
        if len(content) > LONG_BYTES:
            self.transport.writelines((head, content))
        else:
            self.transport.write(head + content)

    def answered(self, *, keep_alive: bool) -> None:
        """A request was answered at once."""
        self.server_state.total_requests += 1
        self._answered_at = self.loop.time()
        if not keep_alive:
            self.transport.close()
        elif self._idle is None:
            self._idle = self.loop.call_later(KEEP_ALIVE_SECONDS, self._close_if_idle)

    def _close_if_idle(self) -> None:
        self._idle = None
        if self._patience is not None or not self._is_free() or self.timeout_keep_alive_task is not None:
            # It is in use, and what comes after that has its own clock.
            return
        left = self._answered_at + KEEP_ALIVE_SECONDS - self.loop.time()
        if left > 0:
            self._idle = self.loop.call_later(left, self._close_if_idle)
        else:
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader(sys.maxsize)

    def _watch_reader(self, before: int) -> None:
        """Let a client go that has taken nothing of what it asked for since the last look."""
        left = self.transport.get_write_buffer_size()
        if left >= before:
            self.transport.abort()
        else:
            self._unread = self.loop.call_later(WRITE_SECONDS, self._watch_reader, left)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._deadline, self._unread, self._idle):
            if timer is not None:
                timer.cancel()
        for cycle in self._cycles:
            # uvicorn tells only the newest one.
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        super().connection_lost(exc)

    def _keep_time(self) -> None:
        self._allowed = self._patience
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._allowed is not None:
            self._deadline = self.loop.call_later(self._allowed, self.transport.abort)


class _Immediate:
    """A request that has come in one piece, as an application sees it.

    The application runs here and now. If it answers without waiting, there is no task, and its answer is
    written at once and in one piece. Otherwise it goes on in a task.
    """

    __slots__ = ("_app", "_body", "_connection", "_cycle", "_in_task", "_messages", "_rest", "_scope")

    def __init__(self, connection: _Connection, app: Any, scope: AsgiScope, body: bytes) -> None:
        self._connection = connection
        self._app = app
        self._scope = scope
        self._body: bytes | None = body
        #: What the application has said as long as there was no task.
        self._messages: list[Any] = []
        self._cycle: RequestResponseCycle | None = None
        self._rest: Awaitable[None] | None = None
        self._in_task = False

    def run(self) -> None:
        running = self._app(self._scope, self._receive, self._send)
        # What is noted of this request while it is answered must not meet the next one.
        context = copy_context()
        try:
            waits_for = context.run(running.send, None)
        except StopIteration:
            if self._cycle is None and not self._is_whole():
                context.run(self._start_task)
        except BaseException as error:  # noqa: BLE001  # uvicorn tells of it, in the log and to the client
            self._rest = _raising(error)
        else:
            self._rest = eager_tasks.resume(running, waits_for)
        if self._rest is not None and self._cycle is None:
            context.run(self._start_task)
        if self._cycle is None:
            self._write()

    async def _receive(self) -> Any:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        return await (self._cycle or self._start_task()).receive()

    async def _send(self, message: Any) -> None:
        if self._in_task:
            assert self._cycle is not None
            await self._cycle.send(message)
        else:
            self._messages.append(message)

    def _start_task(self) -> RequestResponseCycle:
        self._connection.start_task(self._go_on)
        self._connection.end_message()
        self._cycle = self._connection.cycle
        return self._cycle

    async def _go_on(self, scope: Any, receive: Any, send: Any) -> None:
        for message in self._messages:
            await send(message)
        self._in_task = True
        if self._rest is not None:
            await self._rest

    def _is_whole(self) -> bool:
        return len(self._messages) > 1 and not self._messages[-1].get("more_body", False)

    def _write(self) -> None:
        connection, begin = self._connection, self._messages[0]
        body = b"".join([message.get("body", b"") for message in self._messages[1:]])
        parser = connection.parser
        keep_alive = parser.should_keep_alive() and parser.get_http_version() != "1.0"
        lines = [STATUS_LINE[begin["status"]]]
        for name, value in begin["headers"]:
            if b"\n" in value or b"\r" in value or b"\0" in value:
                raise ValueError(f"the header {name!r} holds a line break")
            if name == b"connection":
                keep_alive = keep_alive and value != b"close"
            elif name != b"content-length":
                lines.append(b"%b: %b\r\n" % (name, value))
        lines.append(b"content-length: %d\r\n" % len(body))
        lines.append(b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
        connection.write(b"".join(lines), body)
        connection.answered(keep_alive=keep_alive)


def _scope_of(connection: _Connection) -> dict[str, Any]:
    """A request to an application, as ASGI has it."""
    path, _, query = connection.url.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path.decode("ascii"),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": connection.headers,
        HEADERS: Headers(connection.headers),
        "server": connection.server,
        "client": connection.client,
    }


async def _raising(error: BaseException) -> None:
    raise error


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, begin: Callable[[], object], end: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(config)
        self._begin = begin
        self._end = end

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._begin()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on a signal, and be done with it: uvicorn would raise it again."""
        loop = get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _stop(self) -> None:
        # The second time, somebody is in a hurry.
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        # Streams would go on for ever.
        await self._end()
        await super().shutdown(sockets)


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that takes connections. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


async def serve(
    application: Application,
    listener: socket.socket,
    end: Callable[[], Awaitable[None]],
    *,
    begin: Callable[[], object] = lambda: None,
    sync_handlers: Mapping[bytes, SyncHandler] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT.

    POST requests to the addresses in `sync_handlers` are answered without a task, if nobody has to wait: until
    it waits, the application must not ask for its task there.
    `begin` is called when connections and signals are taken, and `end` at the end, to end what would not end
    by itself.
    """
    config = uvicorn.Config(
        application,
        http=type("Connection", (_Connection,), {"sync_handlers": sync_handlers or {}}),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # Nobody on the way is trusted to say who a client is.
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        backlog=BACKLOG,
    )
    await _Server(config, begin, end).serve(sockets=[listener])


def new_event_loop() -> AbstractEventLoop:
    """The fastest event loop there is here."""
    try:
        import uvloop
    except ImportError:
        import asyncio

        return asyncio.new_event_loop()
    loop: Any = uvloop.new_event_loop()
    return loop  # type: ignore[no-any-return]
