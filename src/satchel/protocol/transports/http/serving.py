"""An ASGI application on a socket: uvicorn, with the deadlines that it does not have."""

from __future__ import annotations

import signal
import socket
from asyncio import AbstractEventLoop, TimerHandle, Transport, get_running_loop
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from satchel.protocol.transports.http.messages import Application

#: A request's head has this long to arrive, from the connection or its first byte on.
HEAD_SECONDS: Final = 10
#: So much of a request may come that is no body.
HEAD_BYTES: Final = 64 * 1024
#: A request's body has this long, whoever reads it.
BODY_SECONDS: Final = 14
#: A client that does not take what it asked for within this time is let go.
WRITE_SECONDS: Final = 30
#: A connection without a request is kept for so long.
KEEP_ALIVE_SECONDS: Final = 30
#: How long what is under way may take when the server ends.
GRACE_SECONDS: Final = 5
BACKLOG: Final = 2048


class _Connection(HttpToolsProtocol):
    """A connection that has to come to the point."""

    _deadline: TimerHandle | None = None
    _unread: TimerHandle | None = None
    _head_bytes = 0
    #: Requests that have come on this connection and may not have been answered.
    _cycles: tuple[RequestResponseCycle, ...] = ()

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._expect(HEAD_SECONDS)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._deadline is None:
            self._expect(HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        self._expect(BODY_SECONDS)
        super().on_headers_complete()
        self._cycles = (*(cycle for cycle in self._cycles if not cycle.response_complete), self.cycle)

    def on_body(self, body: bytes) -> None:
        # What is counted is what came after the last complete request and is no body.
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        self._relax()
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._relax()
        if self._unread is not None:
            self._unread.cancel()
        for cycle in self._cycles:
            # uvicorn tells only the newest one.
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        super().connection_lost(exc)

    def _expect(self, seconds: float) -> None:
        self._relax()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _relax(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


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
) -> None:
    """Serve until SIGTERM or SIGINT.

    `begin` is called when connections and signals are taken, and `end` at the end, to end what would not end
    by itself.
    """
    config = uvicorn.Config(
        application,
        http=_Connection,
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
