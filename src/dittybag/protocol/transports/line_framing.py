"""Frames out of a stream of bytes: one per line, of bounded length."""

from __future__ import annotations

from collections.abc import Iterator

from dittybag.protocol.jsonrpc import END_BYTES


class Oversize:
    """A line that was too long to keep: its length and its two ends."""

    __slots__ = ("head", "size", "tail")

    def __init__(self, head: bytes, tail: bytes, size: int) -> None:
        self.head = head
        self.tail = tail
        self.size = size


class LineSplitter:
    """Cuts chunks of bytes into lines, keeping no more than `limit` bytes of an unfinished one."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._kept = 0
        #: Set while a line is being skipped because it is too long.
        self._oversize: Oversize | None = None

    def feed(self, chunk: bytes) -> Iterator[bytes | Oversize]:
        """The lines that `chunk` completes, without their line breaks."""
        first, *others = chunk.split(b"\n")
        if not others:
            self._keep(first)
            return
        last = others.pop()
        if self._parts or self._oversize:
            self._keep(first)
            yield self._take()
        elif len(first) <= self._limit:
            yield first
        else:
            yield _too_long(first)
        for line in others:
            yield line if len(line) <= self._limit else _too_long(line)
        self._keep(last)

    def finish(self) -> Iterator[bytes | Oversize]:
        """The last line, if the stream ended without a line break."""
        if self._parts or self._oversize:
            yield self._take()

    def _keep(self, part: bytes) -> None:
        if not part:
            return
        if self._oversize:
            self._oversize.tail = (self._oversize.tail + part)[-END_BYTES:]
            self._oversize.size += len(part)
            return
        self._parts.append(part)
        self._kept += len(part)
        if self._kept > self._limit:
            self._oversize = _too_long(b"".join(self._parts))
            self._clear()

    def _take(self) -> bytes | Oversize:
        if oversize := self._oversize:
            self._oversize = None
            return oversize
        line = b"".join(self._parts)
        self._clear()
        return line

    def _clear(self) -> None:
        self._parts.clear()
        self._kept = 0


def _too_long(line: bytes) -> Oversize:
    return Oversize(line[:END_BYTES], line[-END_BYTES:], len(line))
