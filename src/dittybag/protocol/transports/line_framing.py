"""Splitting of a byte stream into lines of bounded length."""

from __future__ import annotations

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

    def feed(self, chunk: bytes) -> list[bytes | OversizeLine]:
        """Return the lines that `chunk` completes, without line breaks."""
        parts = chunk.split(b"\n")
        last = parts.pop()
        limit = self._limit
        lines: list[bytes | OversizeLine] = [*parts]
        if len(chunk) > limit:
            lines = [part if len(part) <= limit else _oversize_line(part) for part in parts]
        if parts and (self._parts or self._oversize):
            self._append(parts[0])
            lines[0] = self._pop_line()
        if last:
            self._append(last)
        return lines

    def finish(self) -> list[bytes | OversizeLine]:
        """Return the last line, if the stream ended without a line break."""
        return [self._pop_line()] if self._parts or self._oversize else []

    def _append(self, part: bytes) -> None:
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
