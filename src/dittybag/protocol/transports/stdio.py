"""MCP over the process's standard input and output.

The descriptors are claimed: file descriptor 1 becomes another name for standard error, so whatever a library
prints cannot reach the client.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from dittybag.protocol.dispatch import Session
from dittybag.protocol.features import MaybeAwaitable, await_if_needed
from dittybag.protocol.jsonrpc import find_request_id_at_ends
from dittybag.protocol.lazy_tls import asyncio
from dittybag.protocol.server import Server
from dittybag.protocol.transports.file_descriptors import FrameWriter, create_reader
from dittybag.protocol.transports.line_framing import LineSplitter, OversizeLine
from dittybag.protocol.wire_errors import InvalidRequest

#: How long requests may go on after the client has closed its end.
GRACE_SECONDS: Final = 0.8
#: How long a stuck thread may delay the end of the process after that.
EXIT_SECONDS: Final = 1.0

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def run(server: Server | Callable[[], MaybeAwaitable[Server]]) -> None:
    """Serve one client on standard input and output, until it hangs up or SIGTERM or SIGINT arrives.

    A function that builds the server is called when the descriptors are safe: what is printed on the way
    cannot reach the client either.
    """
    source, sink = claim_descriptors()

    async def build_and_serve() -> None:
        built = server if isinstance(server, Server) else await await_if_needed(server())
        await serve(built, source, sink)

    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(build_and_serve())
    finally:
        asyncio.set_event_loop(None)
        # Clients follow up on a closed input with SIGTERM. It is too late for that to be an unclean end.
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
        # Not `asyncio.run`: it waits for worker threads, however long they take.
        loop.close()
        _start_exit_watchdog()


def claim_descriptors() -> tuple[int, int]:
    """Take standard input and output for the wire, and leave harmless descriptors in their place."""
    nothing = os.open(os.devnull, os.O_RDWR)
    source, sink = _duplicate(0, nothing), _duplicate(1, nothing)
    os.dup2(nothing, 0)
    os.dup2(_duplicate(2, nothing), 1)
    return source, sink


def _duplicate(descriptor: int, otherwise: int) -> int:
    """Another name for what a descriptor stands for; for `otherwise`, if it was closed."""
    try:
        return os.dup(descriptor)
    except OSError:
        return os.dup(otherwise)


def _start_exit_watchdog() -> None:
    """Make sure that the process ends, even if a handler's thread never does."""
    watchdog = threading.Timer(EXIT_SECONDS, os._exit, args=(0,))
    watchdog.daemon = True
    watchdog.start()


async def serve(server: Server, source: int, sink: int) -> None:
    """Serve one client on two descriptors."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    writer = FrameWriter(loop, sink, on_disconnect=ended.set)
    session = Session(server, writer)
    receiver = _FrameReceiver(session, writer, ended.set)
    reader = create_reader(loop, source, receiver.feed, session.is_idle)

    def resume_reading() -> None:
        if receiver.process_lines():
            reader.resume()

    writer.on_full = reader.pause
    writer.on_drained = resume_reading
    for number in _STOP_SIGNALS:
        # Only the main thread may take signals, and not every platform's loop can.
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, ended.set)
    async with server.lifespan():
        reader.resume()
        try:
            await ended.wait()
        finally:
            reader.pause()
            await session.close(GRACE_SECONDS)
            await writer.close(GRACE_SECONDS)


class _FrameReceiver:
    """Hands what is read to the session, line by line, as fast as the client takes the answers."""

    def __init__(self, session: Session, writer: FrameWriter, when_ended: Callable[[], None]) -> None:
        self._session = session
        self._writer = writer
        self._when_ended = when_ended
        self._limit = session.server.limits.message_bytes
        self._splitter = LineSplitter(self._limit)
        self._lines: deque[bytes | OversizeLine] = deque()
        self._ended = False

    def feed(self, chunk: bytes) -> None:
        """Take what was read; nothing means the end of the input."""
        self._ended = not chunk
        self._lines.extend(self._splitter.feed(chunk) if chunk else self._splitter.finish())
        self.process_lines()

    def process_lines(self) -> bool:
        """Deal with the lines that are there; whether there is room for more."""
        writer = self._writer
        writer.defer_flush()
        while self._lines and not writer.full:
            self._receive(self._lines.popleft())
        writer.flush()
        if self._ended and not self._lines:
            self._when_ended()
        return not writer.full

    def _receive(self, line: bytes | OversizeLine) -> None:
        if isinstance(line, OversizeLine):
            problem = f"Invalid Request: a message has at most {self._limit} bytes, this one {line.size}"
            self._session.refuse(InvalidRequest(problem), find_request_id_at_ends(line.head, line.tail))
        elif line and not line.isspace():
            self._session.receive(line)
