"""An ASGI application on a socket: uvicorn, with the deadlines that it does not have."""

from __future__ import annotations

import socket
from asyncio import AbstractEventLoop, TimerHandle, Transport
from collections.abc import Awaitable, Callable
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from satchel.protocol.transports.http.messages import Application

#: A request's head has this long to arrive, from the connection or its first byte on.
HEAD_SECONDS: Final = 10
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

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._await_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._deadline is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        self._head_is_there()
        # The first byte of the body, or the end of a request without one.
        self._await_head()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_is_there()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_is_there()
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_there()
        if self._unread is not None:
            self._unread.cancel()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _head_is_there(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, end: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._end = end

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
    application: Application, listener: socket.socket, end: Callable[[], Awaitable[None]]
) -> None:
    """Serve until SIGTERM or SIGINT; `end` is called then, to end what would not end by itself."""
    config = uvicorn.Config(
        application,
        http=_Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        backlog=BACKLOG,
    )
    await _Server(config, end).serve(sockets=[listener])


def new_event_loop() -> AbstractEventLoop:
    """The fastest event loop there is here."""
    try:
        import uvloop
    except ImportError:
        import asyncio

        return asyncio.new_event_loop()
    loop: Any = uvloop.new_event_loop()
    return loop  # type: ignore[no-any-return]
