"""Non-blocking reading and writing of pipes, files and sockets."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from dittybag.protocol.lazy_tls import asyncio

_READ_BYTES: Final = 256 * 1024
#: Buffered frames are written when they exceed this size.
_WRITE_BYTES: Final = 128 * 1024
#: Reading pauses while more than this is unsent.
_HIGH_WATER: Final = 1024 * 1024

#: A request that arrives this soon after the last response counts as quick.
_QUICK_SECONDS: Final = 100e-6
#: After a quick request, poll this long for the next one, at most `_MAX_SPINS` times in a row.
_SPIN_SECONDS: Final = 50e-6
_MAX_SPINS: Final = 20
#: After a poll without a result, this many quick requests are not polled for.
_SKIPS_AFTER_MISS: Final = 64


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
        self._frames.append(frame)
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
        self._frames.append(b"")
        ready = b"\n".join(self._frames)
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
        try:
            count = os.write(self._sink, data)
            while self._is_blocking and count < len(data):
                count += os.write(self._sink, data[count:])
            return count
        except BlockingIOError:
            return 0
        except OSError:
            # The client is gone.
            self._disconnected = True
            self._on_disconnect()
            return len(data)

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
    is_idle: Callable[[], bool],
) -> DescriptorReader:
    """Return a reader for `source`. `is_idle` returns whether no request is running."""
    try:
        loop.add_reader(source, _do_nothing)
    except (OSError, NotImplementedError):
        # A regular file, or an event loop that cannot watch pipes.
        return _ThreadReader(loop, source, feed)
    loop.remove_reader(source)
    return _EventLoopReader(loop, source, feed, is_idle)


class _EventLoopReader:
    """Reads when the event loop reports input.

    Going to sleep and waking up takes longer than handling a call. If a client sends its next request within
    microseconds, as programs do, the reader polls briefly for more input before it returns to the event loop.
    See docs/decisions/0003-poll-briefly-before-sleeping.md.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        source: int,
        feed: Callable[[bytes], None],
        is_idle: Callable[[], bool],
    ) -> None:
        self._loop = loop
        self._source = source
        self._feed = feed
        self._is_idle = is_idle
        self._ended = False
        self._paused = True
        self._poll = select.poll()
        self._poll.register(source, select.POLLIN)
        self._last_read_at = 0.0
        #: The number of quick requests to skip before polling again.
        self._skips_left = 0

    def resume(self) -> None:
        self._paused = self._ended
        if not self._ended:
            self._loop.add_reader(self._source, self._read)

    def pause(self) -> None:
        self._paused = True
        self._loop.remove_reader(self._source)

    def _read(self) -> None:
        is_quick = time.perf_counter() - self._last_read_at < _QUICK_SECONDS
        self._read_once()
        if is_quick and self._skips_left:
            self._skips_left -= 1
        elif is_quick:
            spins = _MAX_SPINS
            while spins and self._is_idle() and self._wait_for_more():
                self._read_once()
                spins -= 1
        self._last_read_at = time.perf_counter()

    def _read_once(self) -> None:
        try:
            chunk = os.read(self._source, _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._ended = True
            self.pause()
        self._feed(chunk)

    def _wait_for_more(self) -> bool:
        if self._paused:
            return False
        until = time.perf_counter() + _SPIN_SECONDS
        while time.perf_counter() < until:
            if self._poll.poll(0):
                return True
        self._skips_left = _SKIPS_AFTER_MISS
        return False


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
