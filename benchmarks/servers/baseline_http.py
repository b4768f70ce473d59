"""The HTTP floor, and the client's own maximum: a socket loop that responds without any validation.

`baseline_http.py PORT`.
"""

import select
import socket
import sys

from baseline_stdio import BaselineRequest, respond
from msgspec.json import Decoder

decode = Decoder(BaselineRequest).decode


def encode(status: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\nmcp-session-id: 1\r\ncontent-length: %d\r\n\r\n"
    return head % (status, len(body)) + body


def answer(data: bytes) -> tuple[bytes, bytes]:
    """Return the response to the first request, and what follows it; no response to half a request."""
    head, found, rest = data.partition(b"\r\n\r\n")
    if not found:
        return b"", data
    if not data.startswith(b"POST"):
        return encode(b"405 Method Not Allowed", b""), rest
    at = head.lower().index(b"\r\ncontent-length:")
    length = int(head[at + 17 :].split(b"\r", 1)[0])
    if len(rest) < length:
        return b"", data
    request = decode(rest[:length])
    if request.id is None:
        return encode(b"202 Accepted", b""), rest[length:]
    return encode(b"200 OK", respond(request)), rest[length:]


def main() -> None:
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128)
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    connections: dict[int, tuple[socket.socket, bytes]] = {}
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == listener.fileno():
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connections[connection.fileno()] = connection, b""
                poll.register(connection, select.POLLIN)
                continue
            connection, partial = connections[descriptor]
            if chunk := connection.recv(1 << 16):
                response, rest = answer(partial + chunk)
                connections[descriptor] = connection, rest
                connection.send(response)
            else:
                poll.unregister(descriptor)
                connections.pop(descriptor)[0].close()


if __name__ == "__main__":
    main()
