"""Pipes, files and sockets for a transport: read as soon as there is something, written without waiting."""

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
#: So much is gathered for one write.
_WRITE_BYTES: Final = 128 * 1024
#: With so much unread by the client, no more is read from it.
_HIGH_WATER: Final = 1024 * 1024

#: A request that comes so soon after the last answer is a quick one.
_QUICK_SECONDS: Final = 100e-6
#: How long the next one is waited for then, and how often before the loop gets its turn.
_SPIN_SECONDS: Final = 50e-6
_MAX_SPINS: Final = 20
#: After waiting in vain, so many quick requests are not waited for.
_SKIPS_AFTER_MISS: Final = 64


class FrameWriter:
    """A session's outlet: frames are gathered, and written together."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, sink: int, *, on_disconnect: Callable[[], None]
    ) -> None:
        self.on_full: Callable[[], None] = _do_nothing
        self.on_drained: Callable[[], None] = _do_nothing
        #: The client does not take what there is, and should not be read from.
        self.full = False
        self._on_disconnect = on_disconnect
        self._loop = loop
        self._sink = sink
        self._frames: list[bytes] = []
        self._gathered = 0
        #: What the client's end of the pipe did not take yet.
        self._unsent = bytearray()
        self._flush_is_due = False
        self._disconnected = False
        self._drained = asyncio.Event()
        kind = os.fstat(sink).st_mode
        # A file takes everything at once, and a terminal may be shared with others.
        self._is_blocking = not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind))
        if not self._is_blocking:
            os.set_blocking(sink, False)

    def send_message(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._gathered += len(frame)
        if self._gathered > _WRITE_BYTES:
            self.flush()
        elif not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self.flush)

    def send_response(self, frame: bytes, error: int | None) -> None:
        self.send_message(frame)

    def drop_response(self) -> None:
        pass

    def defer_flush(self) -> None:
        """Gather what comes, until `flush` is called or there is plenty."""
        self._flush_is_due = True

    def flush(self) -> None:
        """Write all that is ready."""
        self._flush_is_due = False
        if not self._frames:
            return
        self._frames.append(b"")
        ready = b"\n".join(self._frames)
        self._frames.clear()
        self._gathered = 0
        if self._unsent:
            self._unsent += ready
        elif (written := self._write_now(ready)) < len(ready):
            self._unsent += ready[written:]
            self._loop.add_writer(self._sink, self._write_more)
        if len(self._unsent) > _HIGH_WATER and not self.full:
            self.full = True
            self.on_full()

    def _write_now(self, data: bytes | bytearray) -> int:
        """How many bytes of `data` the client has taken; all, if there is none left to take them."""
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
            # The client is gone, and nobody is left to be told.
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
        """Write what is left, as long as the client takes it."""
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
    """Feeds what it reads to a callback; nothing more after the end of the input."""

    def resume(self) -> None: ...

    def pause(self) -> None: ...


def create_reader(
    loop: asyncio.AbstractEventLoop,
    source: int,
    feed: Callable[[bytes], None],
    is_idle: Callable[[], bool],
) -> DescriptorReader:
    """The right reader for what `source` is. `is_idle` tells whether nobody but the client is waited for."""
    try:
        loop.add_reader(source, _do_nothing)
    except (OSError, NotImplementedError):
        # A plain file, or a platform whose loop cannot wait for a pipe.
        return _ThreadReader(loop, source, feed)
    loop.remove_reader(source)
    return _EventLoopReader(loop, source, feed, is_idle)


class _EventLoopReader:
    """Reads when the event loop says that there is something.

    To fall asleep and to be woken takes longer than to answer a call. So a client that sends its next request
    within microseconds, as programs do, is waited for a moment before the loop gets its turn.
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
        #: So many quick requests go by before the next one is waited for.
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
            turns = _MAX_SPINS
            while turns and self._is_idle() and self._wait_for_more():
                self._read_once()
                turns -= 1
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
    """Reads in a thread of its own."""

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
            taken = threading.Event()
            try:
                self._loop.call_soon_threadsafe(self._deliver, chunk, taken)
            except RuntimeError:
                # The loop has ended.
                return
            taken.wait()

    def _deliver(self, chunk: bytes, taken: threading.Event) -> None:
        try:
            self._feed(chunk)
        finally:
            taken.set()


def _do_nothing() -> None:
    pass
