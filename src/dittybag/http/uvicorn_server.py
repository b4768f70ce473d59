"""Serves an ASGI application with uvicorn, with added timeouts and a synchronous fast path."""

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

from dittybag.http.asgi_messages import (
    COUNT_UNREAD,
    HEADERS,
    Application,
    AsgiScope,
    Headers,
    SyncHandler,
)
from dittybag.http.unread_responses import ClientResponses
from dittybag.protocol import eager_tasks

#: Timeout for the request head, from the start of the connection or its first byte.
HEAD_SECONDS: Final = 10
#: Maximum size of a request head.
MAX_HEAD_BYTES: Final = 64 * 1024
#: Timeout for the request body.
BODY_SECONDS: Final = 14
#: A client that reads nothing of its response for this long is disconnected.
WRITE_SECONDS: Final = 30
#: After this time, a response is sent, or the connection is paused.
_FLUSH_SECONDS: Final = 0.01
#: An idle connection is closed after this time.
KEEP_ALIVE_SECONDS: Final = 30
#: A longer response body is written separately from the head, to avoid a copy.
LONG_BYTES: Final = 64 * 1024
#: Maximum number of cached request heads per connection, and maximum size of each.
CACHED_HEADS: Final = 16
CACHED_HEAD_BYTES: Final = 2048
#: How long running requests may take at shutdown.
GRACE_SECONDS: Final = 5
BACKLOG: Final = 2048


class _CachedHead(Struct, frozen=True):
    """A parsed request head that the client has sent before, and the length of its body."""

    url: bytes
    scope: dict[str, Any]
    length: int


class _CachedHeadParser:
    """Replaces the HTTP parser for a request with a cached head, which is not parsed."""

    def get_http_version(self) -> str:
        return "1.1"

    def get_method(self) -> bytes:
        return b"POST"

    def should_upgrade(self) -> bool:
        return False

    def should_keep_alive(self) -> bool:
        return True


_CACHED_HEAD_PARSER: Final[Any] = _CachedHeadParser()


class _HttpConnection(HttpToolsProtocol):
    """A connection with read and write timeouts, which handles requests without a task where possible."""

    #: Handlers for POST requests that need no task, by path.
    sync_handlers: Mapping[bytes, SyncHandler] = {}

    _read_timer: TimerHandle | None = None
    _write_timer: TimerHandle | None = None
    #: Closes the connection when it is idle.
    _idle_timer: TimerHandle | None = None
    _responded_at = 0.0
    _head_bytes = 0
    #: The timeout of the current read phase in seconds, and the one that `_read_timer` is set to.
    _timeout: float | None = None
    _armed_timeout: float | None = None
    #: The received body of the current request, while it may still be handled without a task.
    _body_parts: list[bytes] | None = None
    #: The scope of the request that has just been handled without a task.
    _inline_scope: dict[str, Any] | None = None
    #: Requests of this connection whose response may not be complete.
    _cycles: tuple[RequestResponseCycle, ...] = ()

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # same as in uvicorn
        super().connection_made(transport)
        #: Clients usually send the same few heads.
        self._heads: dict[bytes, _CachedHead] = {}
        #: Large responses that the client may not have read.
        self._unread: list[tuple[ClientResponses, int]] = []
        self._timeout = HEAD_SECONDS
        self._arm_timeout()

    def data_received(self, data: bytes) -> None:
        is_start = self._timeout is None
        if is_start and self._heads and self._handle_cached(data):
            return
        self._head_bytes += len(data)
        super().data_received(data)
        if self._inline_scope is not None:
            if is_start:
                self._cache_head(data, self._inline_scope)
            self._inline_scope = None
        if self._body_parts is not None:
            self._start_app_task()
        if self._timeout is not self._armed_timeout:
            self._arm_timeout()
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.transport.abort()

    def _handle_cached(self, data: bytes) -> bool:
        """Handle a request with a cached head, without parsing it. Return `False` if it has none."""
        end = data.find(b"\r\n\r\n", 0, CACHED_HEAD_BYTES) + 4
        head = self._heads.get(data[:end])
        if head is None or len(data) - end != head.length or not self._can_write():
            return False
        self._unset_keepalive_if_required()
        body = data[end:]
        response = self.sync_handlers[head.url](head.scope[HEADERS], body)
        if type(response) is tuple:
            status, content, more_headers = response
            head_bytes = b"%bcontent-type: application/json\r\n%bcontent-length: %d\r\n\r\n" % (
                STATUS_LINE[status],
                more_headers,
                len(content),
            )
            self.write(head_bytes, content)
            self.response_sent(keep_alive=True)
            return True
        parser: Any = self.parser
        self.parser = _CACHED_HEAD_PARSER
        try:
            self.url, self.headers = head.url, head.scope["headers"]
            _InlineRequest(self, response or self.app, head.scope.copy(), body).run()
        finally:
            self.parser = parser
        return True

    def _cache_head(self, data: bytes, scope: dict[str, Any]) -> None:
        """Cache a head if the data was exactly this head and one body of the stated length."""
        end = data.find(b"\r\n\r\n", 0, CACHED_HEAD_BYTES) + 4
        length = len(data) - end
        is_single = self._timeout is None and scope["headers"].count((b"content-length", b"%d" % length)) == 1
        if end > 4 and is_single and self.parser.should_keep_alive() and not self.transport.is_closing():
            if len(self._heads) >= CACHED_HEADS:
                self._heads.clear()
            self._heads[data[:end]] = _CachedHead(self.url, scope, length)

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        self.url = b""
        self.headers = []
        self._timeout = HEAD_SECONDS

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._timeout = BODY_SECONDS
        self._body_parts = []
        needs_task = self.url not in self.sync_handlers or self.parser.get_method() != b"POST"
        if needs_task or self.parser.should_upgrade() or not self._can_write():
            self._start_app_task()

    def on_body(self, body: bytes) -> None:
        # Only bytes before the body count.
        self._head_bytes = 0
        if self._body_parts is not None:
            self._body_parts.append(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        self._timeout = None
        if self._body_parts is not None:
            body, self._body_parts = b"".join(self._body_parts), None
            scope = self._inline_scope = _build_scope(self)
            _InlineRequest(self, self.app, scope.copy(), body).run()
        else:
            super().on_message_complete()

    def _can_write(self) -> bool:
        """Return whether a response can be written now: no other is pending, and the client keeps up."""
        cycle: RequestResponseCycle | None = self.cycle
        return (
            (cycle is None or cycle.response_complete)
            and not self.flow.write_paused
            and not self.transport.is_closing()
        )

    def _start_app_task(self) -> None:
        """Handle the current request in a task, which reads the rest of the body."""
        parts, self._body_parts = self._body_parts or [], None
        self.start_task(self.app)
        for part in parts:
            super().on_body(part)

    def start_task(self, app: Any) -> None:
        """Run an application for the request whose head has been received."""
        url, headers = self.url, self.headers
        super().on_message_begin()
        self.url, self.headers, self.scope["headers"] = url, headers, headers
        self.scope[COUNT_UNREAD] = self.count_unread  # type: ignore[typeddict-unknown-key]  # our own key
        self.expect_100_continue = (b"expect", b"100-continue") in headers
        default_app, self.app = self.app, app
        try:
            super().on_headers_complete()
        finally:
            self.app = default_app
        self._cycles = (*(cycle for cycle in self._cycles if not cycle.response_complete), self.cycle)

    def end_message(self) -> None:
        """Tell uvicorn that the request is complete."""
        super().on_message_complete()

    def write(self, head: bytes, content: bytes) -> None:
        """Write a response in one piece. A long body is not copied."""
        if len(content) > LONG_BYTES:
            self.transport.writelines((head, content))
        else:
            self.transport.write(head + content)

    def response_sent(self, *, keep_alive: bool) -> None:
        """Count a response that was written without a task, and start the idle timer."""
        self.server_state.total_requests += 1
        self._responded_at = self.loop.time()
        if not keep_alive:
            self.transport.close()
        elif self._idle_timer is None:
            self._idle_timer = self.loop.call_later(KEEP_ALIVE_SECONDS, self._close_if_idle)

    def _close_if_idle(self) -> None:
        self._idle_timer = None
        if self._timeout is not None or not self._can_write() or self.timeout_keep_alive_task is not None:
            # The connection is in use; other timers apply.
            return
        left = self._responded_at + KEEP_ALIVE_SECONDS - self.loop.time()
        if left > 0:
            self._idle_timer = self.loop.call_later(left, self._close_if_idle)
        else:
            self.transport.close()

    def count_unread(self, unread: ClientResponses, size: int) -> None:
        """Count a large response as unread until most of it has been sent."""
        unread.add(size)
        self._unread.append((unread, size))
        if len(self._unread) == 1:
            self.loop.call_later(_FLUSH_SECONDS, self._check_unread)

    def _check_unread(self) -> None:
        # Otherwise `resume_writing` is called later.
        if not self.flow.write_paused:
            self._count_read()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._check_reader(sys.maxsize)

    def _count_read(self) -> None:
        for unread, size in self._unread:
            unread.remove(size)
        self._unread.clear()

    def _check_reader(self, before: int) -> None:
        """Disconnect a client that has read nothing since the last check."""
        left = self.transport.get_write_buffer_size()
        if left >= before:
            self.transport.abort()
        else:
            self._write_timer = self.loop.call_later(WRITE_SECONDS, self._check_reader, left)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._count_read()
        if self._write_timer is not None:
            self._write_timer.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._count_read()
        for timer in (self._read_timer, self._write_timer, self._idle_timer):
            if timer is not None:
                timer.cancel()
        for cycle in self._cycles:
            # uvicorn notifies only the newest one.
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        super().connection_lost(exc)

    def _arm_timeout(self) -> None:
        self._armed_timeout = self._timeout
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
        if self._armed_timeout is not None:
            self._read_timer = self.loop.call_later(self._armed_timeout, self.transport.abort)


class _InlineRequest:
    """A completely received request that runs without a task as long as possible.

    The coroutine of the application runs until it first has to wait. If it ends before, its response is
    written in one piece. Otherwise it continues in a task.
    """

    __slots__ = ("_app", "_body", "_connection", "_cycle", "_in_task", "_messages", "_remainder", "_scope")

    def __init__(self, connection: _HttpConnection, app: Any, scope: AsgiScope, body: bytes) -> None:
        self._connection = connection
        self._app = app
        self._scope = scope
        self._body: bytes | None = body
        #: The messages that the application has sent before there was a task.
        self._messages: list[Any] = []
        self._cycle: RequestResponseCycle | None = None
        self._remainder: Awaitable[None] | None = None
        self._in_task = False

    def run(self) -> None:
        running = self._app(self._scope, self._receive, self._send)
        # Context variables of this request must not leak into the next one.
        context = copy_context()
        try:
            awaited = context.run(running.send, None)
        except StopIteration:
            if self._cycle is None and not self._is_complete():
                context.run(self._start_task)
        except BaseException as error:  # noqa: BLE001  # uvicorn logs it and responds to the client
            self._remainder = _raise(error)
        else:
            self._remainder = eager_tasks.resume(running, awaited)
        if self._remainder is not None and self._cycle is None:
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
        self._connection.start_task(self._continue)
        self._connection.end_message()
        self._cycle = self._connection.cycle
        return self._cycle

    async def _continue(self, scope: Any, receive: Any, send: Any) -> None:
        for message in self._messages:
            await send(message)
        self._in_task = True
        if self._remainder is not None:
            await self._remainder

    def _is_complete(self) -> bool:
        return len(self._messages) > 1 and not self._messages[-1].get("more_body", False)

    def _write(self) -> None:
        connection, start = self._connection, self._messages[0]
        body = b"".join([message.get("body", b"") for message in self._messages[1:]])
        parser = connection.parser
        keep_alive = parser.should_keep_alive() and parser.get_http_version() != "1.0"
        lines = [STATUS_LINE[start["status"]]]
        for name, value in start["headers"]:
            if b"\n" in value or b"\r" in value or b"\0" in value:
                raise ValueError(f"the header {name!r} contains a line break or NUL")
            if name == b"connection":
                keep_alive = keep_alive and value != b"close"
            elif name != b"content-length":
                lines.append(b"%b: %b\r\n" % (name, value))
        lines.append(b"content-length: %d\r\n" % len(body))
        lines.append(b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
        connection.write(b"".join(lines), body)
        connection.response_sent(keep_alive=keep_alive)


def _build_scope(connection: _HttpConnection) -> dict[str, Any]:
    """Return the ASGI scope of a request."""
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
        COUNT_UNREAD: connection.count_unread,
        "server": connection.server,
        "client": connection.client,
    }


async def _raise(error: BaseException) -> None:
    raise error


class _UvicornServer(uvicorn.Server):
    """uvicorn with callbacks for start and shutdown, and its own signal handling."""

    def __init__(
        self,
        config: uvicorn.Config,
        on_start: Callable[[], object],
        on_shutdown: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(config)
        self._on_start = on_start
        self._on_shutdown = on_shutdown

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Shut down on a signal. Unlike uvicorn, do not raise the signal again afterwards."""
        loop = get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _stop(self) -> None:
        # A second signal skips the grace period.
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        # Streams do not end by themselves.
        await self._on_shutdown()
        await super().shutdown(sockets)


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


async def serve(
    application: Application,
    listener: socket.socket,
    on_shutdown: Callable[[], Awaitable[None]],
    *,
    on_start: Callable[[], object] = lambda: None,
    sync_handlers: Mapping[bytes, SyncHandler] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT.

    POST requests to the paths in `sync_handlers` run without a task until they first have to wait: before
    that, the application must not use `asyncio.current_task`. `on_start` is called once the server accepts
    connections and signals, `on_shutdown` before it waits for open connections, to end their streams.
    """
    config = uvicorn.Config(
        application,
        http=type("Connection", (_HttpConnection,), {"sync_handlers": sync_handlers or {}}),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # Proxies are not trusted to name the client.
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        backlog=BACKLOG,
    )
    await _UvicornServer(config, on_start, on_shutdown).serve(sockets=[listener])


def new_event_loop() -> AbstractEventLoop:
    """Return a uvloop event loop if uvloop is installed, else an asyncio one."""
    try:
        import uvloop
    except ImportError:
        import asyncio

        return asyncio.new_event_loop()
    loop: Any = uvloop.new_event_loop()
    return loop  # type: ignore[no-any-return]
