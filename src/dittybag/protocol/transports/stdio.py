"""MCP over standard input and output.

File descriptor 1 is redirected to standard error, so that output printed by libraries cannot corrupt the
protocol stream.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import signal
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dittybag.protocol.dispatch import Session
from dittybag.protocol.features import MaybeAwaitable, await_if_needed
from dittybag.protocol.jsonrpc import LONG_BYTES, Decoded, MalformedFrame, find_request_id_at_ends
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.server import Server
from dittybag.protocol.transports.file_descriptors import DescriptorReader, FrameWriter, create_reader
from dittybag.protocol.transports.line_framing import LineSplitter, OversizeLine
from dittybag.protocol.transports.stop_signals import STOP_SIGNALS, stop_on_signals
from dittybag.protocol.wire_errors import InvalidRequest

if TYPE_CHECKING:
    from dittybag.protocol.transports.input_selector import InputSelector

_log = logging.getLogger("dittybag.protocol")

#: How long running requests may continue after the client has disconnected.
GRACE_SECONDS: Final = 0.8
#: How long a stuck thread may delay the exit of the process after that.
EXIT_SECONDS: Final = 1.0


def run(server: Server | Callable[[], MaybeAwaitable[Server]]) -> None:
    """Serve one client on standard input and output until it disconnects or SIGTERM or SIGINT arrives.

    If `server` is a function, it is called after the descriptors are redirected, so that its output cannot
    reach the client either.
    """
    source, sink = claim_descriptors()

    async def build_and_serve() -> None:
        built = server if isinstance(server, Server) else await await_if_needed(server())
        ended = asyncio.Event()
        stack.enter_context(stop_on_signals(loop, ended.set))
        await serve(built, source, sink, selector, ended)

    selector = _create_selector()
    loop = asyncio.new_event_loop() if selector is None else asyncio.SelectorEventLoop(selector)
    stack = contextlib.ExitStack()
    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(build_and_serve())
    finally:
        asyncio.set_event_loop(None)
        # Clients often send SIGTERM after closing the input. Block it, to keep the exit status 0.
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        stack.close()
        # Not `asyncio.run`, which waits for worker threads without a timeout.
        loop.close()
        _start_exit_watchdog()


def claim_descriptors() -> tuple[int, int]:
    """Duplicate standard input and output for the protocol, and redirect the originals.

    Descriptor 0 becomes the null device and descriptor 1 standard error.
    """
    null = os.open(os.devnull, os.O_RDWR)
    source, sink = _duplicate(0, null), _duplicate(1, null)
    os.dup2(null, 0)
    os.dup2(_duplicate(2, null), 1)
    return source, sink


def _duplicate(descriptor: int, otherwise: int) -> int:
    """Duplicate a descriptor, or `otherwise` if it is closed."""
    try:
        return os.dup(descriptor)
    except OSError:
        return os.dup(otherwise)


def _start_exit_watchdog() -> None:
    """Make sure that the process exits, even if a handler's thread never ends."""
    watchdog = threading.Timer(EXIT_SECONDS, os._exit, args=(0,))
    watchdog.daemon = True
    watchdog.start()


def _create_selector() -> InputSelector | None:
    """Return a selector for the event loop; `None` if the system's does not handle the input.

    `poll` of macOS handles no devices.
    """
    if selectors.DefaultSelector is not getattr(selectors, "EpollSelector", None):
        return None
    from dittybag.protocol.transports.input_selector import InputSelector

    return InputSelector()


async def serve(
    server: Server,
    source: int,
    sink: int,
    selector: InputSelector | None = None,
    ended: asyncio.Event | None = None,
) -> None:
    """Serve one client on two file descriptors.

    `selector`: that of the event loop, if it can handle the input itself.
    `ended`: set it to stop the server.
    """
    loop = asyncio.get_running_loop()
    ended = ended or asyncio.Event()
    writer = FrameWriter(loop, sink, on_disconnect=ended.set)
    session = Session(server, writer)
    session.connection = os.urandom(16).hex()
    receiver = _FrameReceiver(session, writer, ended.set)
    reader = create_reader(loop, source, receiver.feed, selector)
    receiver.reader = reader

    def pause() -> None:
        session.pause()
        receiver.process_lines()

    def resume() -> None:
        session.resume()
        receiver.process_lines()

    writer.on_full = pause
    writer.on_drained = resume
    session.on_room = receiver.process_lines
    if selector is not None:
        selector.is_idle = session.is_idle
    async with server.lifespan():
        reader.resume()
        try:
            await ended.wait()
        finally:
            receiver.close()
            await session.close(GRACE_SECONDS)
            await server.on_end(session)
            await writer.close(GRACE_SECONDS)


class _FrameReceiver:
    """Passes input lines to the session, as fast as it handles them and the client reads the responses."""

    reader: DescriptorReader

    def __init__(self, session: Session, writer: FrameWriter, on_end: Callable[[], None]) -> None:
        self._session = session
        self._writer = writer
        self._on_end = on_end
        self._limit = session.server.limits.message_bytes
        self._splitter = LineSplitter(self._limit)
        self._lines: deque[bytes | OversizeLine] = deque()
        self._ended = False
        #: A long line that is being decoded. The lines after it wait.
        self._decoding: asyncio.Future[Decoded] | None = None
        self._is_processing = False
        self._is_reading = True
        self._is_closed = False

    def feed(self, chunk: bytes) -> None:
        """Handle a chunk of input. An empty chunk is the end of the input."""
        self._ended = not chunk
        self._lines.extend(self._splitter.feed(chunk) if chunk else self._splitter.finish())
        self.process_lines()

    def process_lines(self) -> None:
        """Process the buffered lines, and read more if there is room."""
        if self._is_processing:
            # A response has filled the writer. The loop below notices it.
            return
        self._is_processing = True
        writer = self._writer
        writer.defer_flush()
        while self._lines and self._has_room():
            try:
                self._receive(self._lines.popleft())
            except Exception:  # noqa: BLE001  # the lines after it must be received
                _log.exception("cannot handle a message")
        writer.flush()
        self._is_processing = False
        if self._ended and not self._lines and self._decoding is None:
            self._on_end()
        if self._has_room() is not self._is_reading:
            self._is_reading = not self._is_reading
            (self.reader.resume if self._is_reading else self.reader.pause)()

    def close(self) -> None:
        """Stop reading, and ignore the buffered lines."""
        self._is_closed = True
        self.process_lines()

    def _has_room(self) -> bool:
        return (
            self._decoding is None
            and not self._writer.full
            and self._session.has_room()
            and not self._is_closed
        )

    def _receive(self, line: bytes | OversizeLine) -> None:
        if isinstance(line, OversizeLine):
            problem = f"Invalid Request: a message must have at most {self._limit} bytes, not {line.size}"
            self._session.refuse(InvalidRequest(problem), find_request_id_at_ends(line.head, line.tail))
        elif len(line) > LONG_BYTES:
            from dittybag.protocol.frame_decoding import decode_in_thread

            self._decoding = decode_in_thread(line)
            self._decoding.add_done_callback(self._receive_decoded)
        elif line and not line.isspace():
            self._session.receive(line)

    def _receive_decoded(self, decoding: asyncio.Future[Decoded]) -> None:
        self._decoding = None
        try:
            decoded = decoding.result()
        except MalformedFrame as malformed:
            self._session.refuse(malformed.error, malformed.request_id)
        else:
            self._session.receive_decoded(decoded, self._writer)
        finally:
            self.process_lines()
