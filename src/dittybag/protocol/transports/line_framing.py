"""Splitting of a byte stream into lines of bounded length."""

from __future__ import annotations

from collections.abc import Iterator

from dittybag.protocol.jsonrpc import END_BYTES


class OversizeLine:
    """A line over the limit: its length and its two ends."""

    __slots__ = ("head", "size", "tail")

    def __init__(self, head: bytes, tail: bytes, size: int) -> None:
        self.head = head
        self.tail = tail
        self.size = size


class LineSplitter:
    """Splits chunks into lines. Buffers at most `limit` bytes of an incomplete line."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._buffered = 0
        #: Set while a line over the limit is being skipped.
        self._oversize: OversizeLine | None = None

    def feed(self, chunk: bytes) -> Iterator[bytes | OversizeLine]:
        """Yield the lines that `chunk` completes, without line breaks."""
        first, *others = chunk.split(b"\n")
        if not others:
            self._append(first)
            return
        last = others.pop()
        if self._parts or self._oversize:
            self._append(first)
            yield self._pop_line()
        elif len(first) <= self._limit:
            yield first
        else:
            yield _oversize_line(first)
        for line in others:
            yield line if len(line) <= self._limit else _oversize_line(line)
        self._append(last)

    def finish(self) -> Iterator[bytes | OversizeLine]:
        """Yield the last line, if the stream ended without a line break."""
        if self._parts or self._oversize:
            yield self._pop_line()

    def _append(self, part: bytes) -> None:
        if not part:
            return
        if self._oversize:
            self._oversize.tail = (self._oversize.tail + part)[-END_BYTES:]
            self._oversize.size += len(part)
            return
        self._parts.append(part)
        self._buffered += len(part)
        if self._buffered > self._limit:
            self._oversize = _oversize_line(b"".join(self._parts))
            self._clear()

    def _pop_line(self) -> bytes | OversizeLine:
        if oversize := self._oversize:
            self._oversize = None
            return oversize
        line = b"".join(self._parts)
        self._clear()
        return line

    def _clear(self) -> None:
        self._parts.clear()
        self._buffered = 0


def _oversize_line(line: bytes) -> OversizeLine:
    return OversizeLine(line[:END_BYTES], line[-END_BYTES:], len(line))
