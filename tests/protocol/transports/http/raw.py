"""A connection on which any bytes can be sent, and answers are read one after the other."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from typing import Any, Self

import msgspec

PLAIN = (
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Accept: application/json, text/event-stream\r\n"
)


def posted(body: bytes, more: bytes = b"") -> bytes:
    """A whole POST; `more` are lines of headers."""
    return b"%b%bContent-Length: %d\r\n\r\n%b" % (PLAIN, more, len(body), body)


class Raw:
    """A connection."""

    def __init__(self, port: int, seconds: float = 10.0, *, buffer: int | None = None) -> None:
        """`buffer`: how much the system takes in while nobody reads."""
        self.socket = socket.socket()
        if buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(seconds)
        try:
            self.socket.connect(("127.0.0.1", port))
        except BaseException:
            self.socket.close()
            raise
        self._unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_as_far_as_taken(self, data: bytes) -> bool:
        """Send, unless the server has hung up; whether it has not."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def finish(self) -> None:
        """Say that nothing more will be sent."""
        # It may have been closed at the other end.
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """Be gone without a farewell."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def _more(self) -> bool:
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        self._unread += data
        return bool(data)

    def _until(self, end: bytes) -> bytes | None:
        while (at := self._unread.find(end)) < 0:
            if not self._more():
                return None
        found, self._unread = self._unread[:at], self._unread[at + len(end) :]
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._unread) < size and self._more():
            pass
        found, self._unread = self._unread[:size], self._unread[size:]
        return found

    def head(self) -> tuple[int, dict[str, str]] | None:
        """The status and the headers of the next answer; nothing if there is none."""
        text = self._until(b"\r\n\r\n")
        if text is None:
            return None
        first, *lines = text.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return int(first.split(" ")[1]), headers

    def answer(self) -> tuple[int, bytes] | None:
        """The status and the body of the next answer. A listener's stream is read up to its beginning."""
        head = self.head()
        while head is not None and head[0] == 100:
            head = self.head()
        if head is None:
            return None
        status, headers = head
        if headers.get("transfer-encoding") != "chunked":
            return status, self._exactly(int(headers.get("content-length", "0")))
        body = b""
        while piece := self.piece():
            body += piece
            if b"subscriptions/acknowledged" in body:
                break
        return status, body

    def piece(self) -> bytes:
        """The next chunk; empty at the end."""
        size = int(self._until(b"\r\n") or b"0", 16)
        return self._exactly(size + 2)[:size]

    def rest(self) -> bytes:
        """All that is still to come, until the server hangs up."""
        while self._more():
            pass
        found, self._unread = self._unread, b""
        return found


def messages_in(body: bytes) -> list[Any]:
    """The messages of an answer, be it JSON or events."""
    if not body:
        return []
    if body[:1] in b"{[":
        return [msgspec.json.decode(body)]
    data = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ")]
    return [msgspec.json.decode(text) for text in data if text]
