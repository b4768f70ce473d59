"""Serves the application with uvicorn: accepts connections, and shuts down on signals."""

from __future__ import annotations

import signal
import socket
from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn

from dittybag.http.application import HttpApplication
from dittybag.http.http_connection import HttpConnection

#: How long running requests may take at shutdown.
GRACE_SECONDS: Final = 5
BACKLOG: Final = 2048


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
        try:
            self._on_start()
        except BaseException:
            self._stop_listening()
            raise

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

    def _stop_listening(self) -> None:
        for server in self.servers:
            server.close()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stop_listening()
        # Streams do not end by themselves.
        await self._on_shutdown()
        await super().shutdown(sockets)


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


async def serve(
    application: HttpApplication,
    listener: socket.socket,
    on_shutdown: Callable[[], Awaitable[None]],
    *,
    on_start: Callable[[], object] = lambda: None,
) -> None:
    """Serve until SIGTERM or SIGINT.

    `on_start` is called once the server accepts connections and signals, `on_shutdown` before it waits for
    open connections, to end their streams.
    """
    config = uvicorn.Config(
        application,
        http=HttpConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # Proxies are not trusted to name the client.
        proxy_headers=False,
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
