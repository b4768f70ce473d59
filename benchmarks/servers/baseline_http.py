"""The HTTP baseline: a socket loop that finds the end of a request and responds without parsing it.

It shows the maximum rate of the benchmark client.
"""

import select
import socket
import sys

BODY = b'{"jsonrpc":"2.0","id":0,"result":{"content":[{"type":"text","text":"message 0"}]}}'
RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
    len(BODY),
    BODY,
)


def main() -> None:
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128)
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    connections: dict[int, socket.socket] = {}
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == listener.fileno():
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connections[connection.fileno()] = connection
                poll.register(connection, select.POLLIN)
            elif connections[descriptor].recv(1 << 16).endswith(b"}"):
                connections[descriptor].send(RESPONSE)
            else:
                poll.unregister(descriptor)
                connections.pop(descriptor).close()


if __name__ == "__main__":
    main()
