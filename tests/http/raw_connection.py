"""A connection that can send any bytes and reads responses one after the other."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from typing import Any, Self

import msgspec

POST_HEAD = (
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Accept: application/json, text/event-stream\r\n"
)


def post_request(body: bytes, more: bytes = b"") -> bytes:
    """Return a complete POST request. `more`: additional header lines."""
    return b"%b%bContent-Length: %d\r\n\r\n%b" % (POST_HEAD, more, len(body), body)


class RawConnection:
    """A TCP connection to the server."""

    def __init__(self, port: int, seconds: float = 10.0, *, buffer: int | None = None) -> None:
        """`buffer`: the size of the receive buffer of the system."""
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

    def try_send(self, data: bytes) -> bool:
        """Send data. Return `False` if the server has closed the connection."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def finish(self) -> None:
        """Shut down the sending side."""
        # The server may have closed the connection already.
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """Reset the connection."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def _receive(self) -> bool:
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        self._unread += data
        return bool(data)

    def _read_until(self, end: bytes) -> bytes | None:
        while (at := self._unread.find(end)) < 0:
            if not self._receive():
                return None
        found, self._unread = self._unread[:at], self._unread[at + len(end) :]
        return found

    def _read_exactly(self, size: int) -> bytes:
        while len(self._unread) < size and self._receive():
            pass
        found, self._unread = self._unread[:size], self._unread[size:]
        return found

    def read_head(self) -> tuple[int, dict[str, str]] | None:
        """Return the status and headers of the next response, or `None` at the end of the connection."""
        text = self._read_until(b"\r\n\r\n")
        if text is None:
            return None
        first, *lines = text.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return int(first.split(" ")[1]), headers

    def read_response(self) -> tuple[int, bytes] | None:
        """Return the status and body of the next response; of a `listen` stream, only its first message."""
        head = self.read_head()
        while head is not None and head[0] == 100:
            head = self.read_head()
        if head is None:
            return None
        status, headers = head
        if headers.get("transfer-encoding") != "chunked":
            return status, self._read_exactly(int(headers.get("content-length", "0")))
        body = b""
        while chunk := self.read_chunk():
            body += chunk
            if b"subscriptions/acknowledged" in body:
                break
        return status, body

    def read_chunk(self) -> bytes:
        """Return the next chunk; empty at the end."""
        size = int(self._read_until(b"\r\n") or b"0", 16)
        return self._read_exactly(size + 2)[:size]

    def read_to_end(self) -> bytes:
        """Return all data until the server closes the connection."""
        while self._receive():
            pass
        found, self._unread = self._unread, b""
        return found


def parse_messages(body: bytes) -> list[Any]:
    """Return the messages of a response body, JSON or events."""
    if not body:
        return []
    if body[:1] in b"{[":
        return [msgspec.json.decode(body)]
    data = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ")]
    return [msgspec.json.decode(text) for text in data if text]
