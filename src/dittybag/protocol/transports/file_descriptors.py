"""Non-blocking reading and writing of pipes, files and sockets."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from dittybag.protocol.lazy_asyncio import asyncio

if TYPE_CHECKING:
    from dittybag.protocol.transports.input_selector import InputSelector

#: As much as a pipe holds. The C library would map and unmap the memory of a larger buffer for every read.
_READ_BYTES: Final = 64 * 1024
#: Buffered frames are written when they exceed this size.
_WRITE_BYTES: Final = 128 * 1024
#: Reading pauses while more than this is unsent.
_HIGH_WATER: Final = 1024 * 1024


class FrameWriter:
    """An `Outlet` that buffers frames and writes them together."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, sink: int, *, on_disconnect: Callable[[], None]
    ) -> None:
        self.on_full: Callable[[], None] = _do_nothing
        self.on_drained: Callable[[], None] = _do_nothing
        #: The client does not read fast enough, so nothing more should be read from it.
        self.full = False
        self._on_disconnect = on_disconnect
        self._loop = loop
        self._sink = sink
        self._frames: list[bytes] = []
        self._buffered_bytes = 0
        #: Bytes that the pipe has not accepted yet.
        self._unsent = bytearray()
        self._flush_is_due = False
        self._disconnected = False
        self._drained = asyncio.Event()
        kind = os.fstat(sink).st_mode
        # Writes to a file do not block for long, and a terminal may be shared with other processes.
        self._is_blocking = not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind))
        if not self._is_blocking:
            os.set_blocking(sink, False)

    def send_message(self, frame: bytes) -> None:
        self._frames += (frame, b"\n")
        self._buffered_bytes += len(frame)
        if self._buffered_bytes > _WRITE_BYTES:
            self.flush()
        elif not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self.flush)

    def send_response(self, frame: bytes, error: int | None) -> None:
        self.send_message(frame)

    def drop_response(self) -> None:
        pass

    def defer_flush(self) -> None:
        """Buffer frames until `flush` is called or the buffer is large enough."""
        self._flush_is_due = True

    def flush(self) -> None:
        """Write all buffered frames."""
        self._flush_is_due = False
        if not self._frames:
            return
        ready = b"".join(self._frames)
        self._frames.clear()
        self._buffered_bytes = 0
        if self._unsent:
            self._unsent += ready
        elif (written := self._write_now(ready)) < len(ready):
            self._unsent += ready[written:]
            self._loop.add_writer(self._sink, self._write_more)
        if len(self._unsent) > _HIGH_WATER and not self.full:
            self.full = True
            self.on_full()

    def _write_now(self, data: bytes | bytearray) -> int:
        """Write `data` and return the number of accepted bytes; all of them if the client is gone."""
        if self._disconnected:
            return len(data)
        count = 0
        try:
            count = os.write(self._sink, data)
            while self._is_blocking and count < len(data):
                count += os.write(self._sink, data[count:])
        except BlockingIOError:
            # Also a terminal may be non-blocking, because of another process.
            pass
        except OSError:
            # The client is gone.
            self._disconnected = True
            self._on_disconnect()
            return len(data)
        return count

    def _write_more(self) -> None:
        del self._unsent[: self._write_now(self._unsent)]
        if self._unsent:
            return
        self._loop.remove_writer(self._sink)
        self._drained.set()
        if self.full:
            self.full = False
            self.on_drained()

    async def close(self, seconds: float) -> None:
        """Write the remaining frames for up to `seconds`, then close the descriptor."""
        self.flush()
        if self._unsent:
            self._drained.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._drained.wait(), seconds)
            self._loop.remove_writer(self._sink)
        # Another file may get the number of the descriptor.
        self._disconnected = True
        with contextlib.suppress(OSError):
            os.set_blocking(self._sink, True)
        os.close(self._sink)


class DescriptorReader(Protocol):
    """Passes each chunk to a callback, and an empty chunk at the end of the input."""

    def resume(self) -> None: ...

    def pause(self) -> None: ...


def create_reader(
    loop: asyncio.AbstractEventLoop,
    source: int,
    feed: Callable[[bytes], None],
    selector: InputSelector | None = None,
) -> DescriptorReader:
    """Return a reader for `source`. `selector`: that of the loop, if it can handle the input itself."""
    if stat.S_ISREG(os.fstat(source).st_mode):
        # epoll cannot watch files, and kqueue does not report their end.
        return _ThreadReader(loop, source, feed)
    try:
        loop.add_reader(source, _do_nothing)
    except (OSError, NotImplementedError):
        # A device that the system cannot watch.
        return _ThreadReader(loop, source, feed)
    loop.remove_reader(source)
    return _EventLoopReader(loop, source, feed, selector)


class _EventLoopReader:
    """Reads when the event loop or its selector reports input."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        source: int,
        feed: Callable[[bytes], None],
        selector: InputSelector | None,
    ) -> None:
        self._loop = loop
        self._source = source
        self._feed = feed
        self._selector = selector
        self._ended = False

    def resume(self) -> None:
        if self._ended:
            return
        if self._selector is None:
            self._loop.add_reader(self._source, self._read)
        else:
            self._selector.watch_input(self._source, self._read)

    def pause(self) -> None:
        if self._selector is None:
            self._loop.remove_reader(self._source)
        else:
            self._selector.ignore_input()

    def _read(self) -> None:
        try:
            chunk = os.read(self._source, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._ended = True
            self.pause()
        self._feed(chunk)


class _ThreadReader:
    """Reads in a separate thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, source: int, feed: Callable[[bytes], None]) -> None:
        self._loop = loop
        self._source = source
        self._feed = feed
        self._may_read = threading.Event()
        self._started = False

    def resume(self) -> None:
        self._may_read.set()
        if not self._started:
            self._started = True
            threading.Thread(target=self._read_all, name="stdin", daemon=True).start()

    def pause(self) -> None:
        self._may_read.clear()

    def _read_all(self) -> None:
        chunk = b"-"
        while chunk:
            self._may_read.wait()
            try:
                chunk = os.read(self._source, _READ_BYTES)
            except OSError:
                chunk = b""
            delivered = threading.Event()
            try:
                self._loop.call_soon_threadsafe(self._deliver, chunk, delivered)
            except RuntimeError:
                # The loop has ended.
                return
            delivered.wait()

    def _deliver(self, chunk: bytes, delivered: threading.Event) -> None:
        try:
            self._feed(chunk)
        finally:
            delivered.set()


def _do_nothing() -> None:
    pass
