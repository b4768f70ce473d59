"""HTTP/1.1 on a connection: parses requests with httptools, and runs the ASGI application in a task for each.

uvicorn accepts the connections and shuts them down; this is its `http` class.
"""

from __future__ import annotations

import logging
import sys
from asyncio import AbstractEventLoop, Event, Protocol, Task, TimerHandle, Transport, get_running_loop
from collections import deque
from contextvars import copy_context
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url
from uvicorn.config import Config
from uvicorn.server import ServerState

from dittybag.http.asgi_messages import COUNT_UNREAD, Header
from dittybag.http.unread_responses import ClientResponses

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
#: How often a response that was not sent in this time is checked again.
_RECHECK_SECONDS: Final = 0.1
#: An idle connection is closed after this time.
KEEP_ALIVE_SECONDS: Final = 30
#: Reading pauses while more bytes of a body, or more pipelined requests, than this are waiting.
_MAX_BODY_BYTES: Final = 64 * 1024
_MAX_PIPELINED: Final = 16
#: A longer response body is written separately from the head, to avoid a copy.
_LONG_BYTES: Final = 64 * 1024

_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_BAD_REQUEST: Final = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 30\r\n"
    b"connection: close\r\n\r\nInvalid HTTP request received."
)

_log = logging.getLogger("dittybag")


class HttpConnection(Protocol):
    """A connection of a client, with timeouts for reading and writing."""

    _transport: Transport
    _read_timer: TimerHandle | None = None
    _write_timer: TimerHandle | None = None
    _idle_timer: TimerHandle | None = None
    _idle_since = 0.0
    #: The bytes since the start of the request, or since the last part of its body.
    _head_bytes = 0
    #: The timeout of the current read phase in seconds, and the one that `_read_timer` is set to.
    _timeout: float | None = HEAD_SECONDS
    _armed_timeout: float | None = None
    _is_reading = True
    #: Set while the client reads its responses.
    writable: Event | None = None
    _url = b""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: AbstractEventLoop | None = None,
    ) -> None:
        """The parameters are those that uvicorn passes."""
        self.loop = _loop or get_running_loop()
        self.app: Any = config.loaded_app
        self.state = server_state
        self._parser = HttpRequestParser(self)
        self._headers: list[Header] = []
        #: The requests without a complete response, in order. The first one is running.
        self._requests: deque[_Request] = deque()
        #: The request that is being received.
        self._newest: _Request | None = None
        #: Large responses that the client may not have read.
        self._unread: list[tuple[ClientResponses, int]] = []
        self._context = copy_context()

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as in uvicorn
        self._transport = transport
        self.state.connections.add(self)  # type: ignore[arg-type]  # uvicorn lists its own classes
        self._client = transport.get_extra_info("peername")
        self._server = transport.get_extra_info("sockname")
        self._arm_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        self.state.connections.discard(self)
        self._count_read()
        for timer in (self._read_timer, self._write_timer, self._idle_timer):
            if timer is not None:
                timer.cancel()
        for request in self._requests:
            request.disconnect()
        self._requests.clear()
        if self.writable is not None:
            self.writable.set()

    def shutdown(self) -> None:
        """Close the connection after the running requests. uvicorn calls this."""
        if self._requests:
            self._requests[-1].keep_alive = False
        else:
            self._transport.close()

    # Reading

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            # The request is answered without the upgrade. What follows it cannot be parsed.
            self._stop_after_newest()
        except HttpParserError:
            self._refuse()
        if self._timeout is not self._armed_timeout:
            self._arm_timeout()
        if self._head_bytes > MAX_HEAD_BYTES:
            self._transport.abort()

    def _arm_timeout(self) -> None:
        self._armed_timeout = self._timeout
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
        if self._armed_timeout is not None:
            self._read_timer = self.loop.call_later(self._armed_timeout, self._transport.abort)

    def _refuse(self) -> None:
        """Handle data that is not HTTP."""
        newest = self._newest
        if newest is not None and newest.more_body and newest in self._requests:
            if newest is not self._requests[0]:
                # It has not been started, and never will.
                self._requests.remove(newest)
            elif newest.is_unanswered:
                self._transport.write(_BAD_REQUEST)
                self._transport.close()
                return
        if self._requests:
            self._stop_after_newest()
        else:
            self._transport.write(_BAD_REQUEST)
            self._transport.close()

    def _stop_after_newest(self) -> None:
        self._timeout = None
        self.pause_reading()
        self.shutdown()

    def pause_reading(self) -> None:
        if self._is_reading and not self._transport.is_closing():
            self._is_reading = False
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self._is_reading and not self._transport.is_closing():
            self._is_reading = True
            self._transport.resume_reading()

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = []
        self._timeout = HEAD_SECONDS

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._timeout = BODY_SECONDS
        parser = self._parser
        version = parser.get_http_version()
        path, query = _split_url(self._url)
        text = path.decode("ascii")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": version,
            "method": parser.get_method().decode("ascii"),
            "scheme": "http",
            "path": unquote(text) if "%" in text else text,
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": self._headers,
            "server": self._server,
            "client": self._client,
            COUNT_UNREAD: self.count_unread,
        }
        keep_alive = parser.should_keep_alive() and version == "1.1"
        self._newest = request = _Request(self, scope, keep_alive=keep_alive)
        self._requests.append(request)
        if len(self._requests) == 1:
            self._start(request)
        elif len(self._requests) > _MAX_PIPELINED:
            self.pause_reading()

    def on_body(self, body: bytes) -> None:
        # Only bytes before the body count.
        self._head_bytes = 0
        if self._newest is not None and self._newest.add_body(body) > _MAX_BODY_BYTES:
            self.pause_reading()

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        self._timeout = None
        if self._newest is not None:
            self._newest.end_body()

    def _start(self, request: _Request) -> None:
        # The context of the connection, not that of the previous request.
        request.task = self.loop.create_task(request.run(), context=self._context.copy())
        self.state.tasks.add(request.task)

    # Writing

    def write(self, head: bytes, body: bytes) -> None:
        """Write a part of a response in one piece. A long body is not copied."""
        if len(body) > _LONG_BYTES:
            self._transport.writelines((head, body))
        else:
            self._transport.write(head + body)

    def response_complete(self, request: _Request) -> None:
        """Go on with the next request."""
        self.state.total_requests += 1
        if request.is_connected:
            self._requests.popleft()
        if not request.keep_alive:
            self._transport.close()
            return
        self.resume_reading()
        if self._requests:
            self._start(self._requests[0])
            return
        self._idle_since = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(KEEP_ALIVE_SECONDS, self._close_if_idle)

    def close(self) -> None:
        self._transport.close()

    def _close_if_idle(self) -> None:
        self._idle_timer = None
        if self._requests:
            # The next response starts the timer again.
            return
        is_idle = self._timeout is None
        left = self._idle_since + KEEP_ALIVE_SECONDS - self.loop.time() if is_idle else KEEP_ALIVE_SECONDS
        if left > 0:
            self._idle_timer = self.loop.call_later(left, self._close_if_idle)
        else:
            self._transport.close()

    def pause_writing(self) -> None:
        self.writable = Event()
        self._check_reader(sys.maxsize)

    def resume_writing(self) -> None:
        if self.writable is not None:
            self.writable.set()
            self.writable = None
        if self._write_timer is not None:
            self._write_timer.cancel()

    def _check_reader(self, before: int) -> None:
        """Disconnect a client that has read nothing since the last check."""
        left = self._transport.get_write_buffer_size()
        if left >= before:
            self._transport.abort()
        else:
            self._write_timer = self.loop.call_later(WRITE_SECONDS, self._check_reader, left)

    def count_unread(self, unread: ClientResponses, size: int) -> None:
        """Count a large response as unread until all of it has been sent."""
        unread.add(size)
        self._unread.append((unread, size))
        if len(self._unread) == 1:
            self.loop.call_later(_FLUSH_SECONDS, self._check_unread)

    def _check_unread(self) -> None:
        if self._transport.get_write_buffer_size() == 0:
            self._count_read()
        elif self._unread:
            # Even the last bytes keep the whole response in memory.
            self.loop.call_later(_RECHECK_SECONDS, self._check_unread)

    def _count_read(self) -> None:
        for unread, size in self._unread:
            unread.remove(size)
        self._unread.clear()


class _Request:
    """A request and its response, as the application sees them: a scope, `receive` and `send`."""

    #: Set when the request starts.
    task: Task[None]
    is_connected = True
    #: The body is not complete.
    more_body = True
    _body = b""
    #: The application has received the whole body.
    _is_received = False
    #: The head of the response, until the first part of its body.
    _head: bytes | None = None
    _is_started = False
    _is_complete = False
    _is_chunked = True
    #: The number of bytes that the response still needs, if it is not chunked.
    _left = 0
    #: Set when something has happened that `receive` waits for.
    _news: Event | None = None

    def __init__(self, connection: HttpConnection, scope: dict[str, Any], *, keep_alive: bool) -> None:
        self._connection = connection
        self._scope = scope
        self.keep_alive = keep_alive
        self._expects_continue = (b"expect", b"100-continue") in scope["headers"]

    @property
    def is_unanswered(self) -> bool:
        """Whether the response has not started."""
        return self.is_connected and not self._is_started

    async def run(self) -> None:
        try:
            await self._connection.app(self._scope, self.receive, self.send)
        except BaseException as error:  # noqa: BLE001  # the edge: the client gets an error, the log the reason
            path = self._scope["raw_path"].decode("ascii", "replace")
            _log.error("a request failed: %s %s", self._scope["method"], path, exc_info=error)
        try:
            if self.is_connected and not self._is_complete:
                await self._end_failed()
        finally:
            # uvicorn waits for these tasks before it ends. A callback of the task would cost more.
            self._connection.state.tasks.discard(self.task)

    async def _end_failed(self) -> None:
        """End the response of an application that has not."""
        if self._is_started:
            self._connection.close()
        else:
            self.keep_alive = False
            body = b"Internal Server Error"
            headers = [
                (b"content-type", b"text/plain; charset=utf-8"),
                (b"content-length", b"%d" % len(body)),
            ]
            await self.send({"type": "http.response.start", "status": 500, "headers": headers})
            await self.send({"type": "http.response.body", "body": body})

    # The request

    def add_body(self, part: bytes) -> int:
        """Return the number of bytes that the application has not received."""
        if self._is_complete:
            return 0
        self._body = self._body + part if self._body else part
        self._notify()
        return len(self._body)

    def end_body(self) -> None:
        self.more_body = False
        self._notify()

    def disconnect(self) -> None:
        self.is_connected = False
        self._notify()

    def _notify(self) -> None:
        if self._news is not None:
            self._news.set()

    async def receive(self) -> Any:
        if self._expects_continue and self.is_unanswered:
            self._expects_continue = False
            self._connection.write(_CONTINUE, b"")
        while self.is_connected and not self._is_complete:
            if self._body or not (self.more_body or self._is_received):
                body, self._body = self._body, b""
                self._is_received = not self.more_body
                return {"type": "http.request", "body": body, "more_body": self.more_body}
            self._connection.resume_reading()
            if self._news is None or self._news.is_set():
                self._news = Event()
            await self._news.wait()
        return {"type": "http.disconnect"}

    # The response

    async def send(self, message: Any) -> None:
        connection = self._connection
        if connection.writable is not None and self.is_connected:
            await connection.writable.wait()
        if not self.is_connected:
            return
        if message["type"] == "http.response.start":
            self._is_started = True
            self._head = self._encode_head(message["status"], message["headers"])
            return
        if self._is_complete or not self._is_started:
            raise RuntimeError("a part of a response was sent before its start or after its end")
        self._write(message.get("body", b""), is_last=not message.get("more_body", False))

    def _encode_head(self, status: int, headers: list[Header]) -> bytes:
        lines = [_STATUS_LINES[status]]
        for name, value in (*self._connection.state.default_headers, *headers):
            lines.append(b"%b: %b\r\n" % (name, value))
            if name == b"content-length":
                self._is_chunked, self._left = False, int(value)
            elif name == b"connection":
                self.keep_alive = self.keep_alive and value != b"close"
        has_body = self._scope["method"] != "HEAD" and status not in (204, 304)
        if not has_body:
            self._is_chunked, self._left = False, 0
        elif self._is_chunked and self._scope["http_version"] == "1.1":
            lines.append(b"transfer-encoding: chunked\r\n")
        elif self._is_chunked:
            # The end of the connection is the end of the response.
            self._is_chunked, self._left, self.keep_alive = False, sys.maxsize, False
        if not self.keep_alive and (b"connection", b"close") not in headers:
            lines.append(b"connection: close\r\n")
        head = b"".join(lines)
        if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines) or b"\0" in head:
            raise ValueError("a response header contains a line break or NUL")
        return head + b"\r\n"

    def _write(self, body: bytes, *, is_last: bool) -> None:
        if self._scope["method"] == "HEAD":
            body = b""
        head, self._head = self._head or b"", None
        if self._is_chunked:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            self._connection.write(head, chunk + b"0\r\n\r\n" if is_last else chunk)
        else:
            self._left -= len(body)
            self._connection.write(head, body)
        if is_last or self._left < 0:
            self._is_complete = True
            # Otherwise the client would take what follows for the rest, or the rest for what follows.
            self.keep_alive = self.keep_alive and self._left == 0
            self._notify()
            self._connection.response_complete(self)


def _split_url(url: bytes) -> tuple[bytes, bytes]:
    """Return the path and the query of a URL. Raises `HttpParserError`."""
    if not url.startswith(b"/") or b"#" in url:
        parsed = parse_url(url)
        return parsed.path or b"/", parsed.query or b""
    path, _, query = url.partition(b"?")
    return path, query
