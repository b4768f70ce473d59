"""`dittybag serve --http` as a child process, and HTTP clients with timeouts."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPMessage, HTTPResponse
from itertools import cycle
from pathlib import Path
from socket import socket
from types import MappingProxyType, TracebackType
from typing import IO, Any, NamedTuple, Self

import msgspec

from tests.forked_processes import ForkedProcess

Json = dict[str, Any]

TIMEOUT_SECONDS = 10.0
JSON = "application/json"
EVENTS = "text/event-stream"
BOTH = f"{JSON}, {EVENTS}"
#: The parameter that a stateless request repeats in a header, by method.
NAME_MEMBERS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
#: The first version whose clients send it in every request.
FIRST_WITH_HEADER = "2025-06-18"

#: The HTTP status of JSON-RPC errors; 200 for all others.
HANDSHAKE_STATUSES = {-32700: 400, -32600: 400}
STATELESS_STATUSES = HANDSHAKE_STATUSES | {-32601: 404}

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class StderrLines:
    """The standard error of a process, line by line."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream.fileno()
        self._written = bytearray()
        self._read = 0

    def wait_for(self, *words: str, seconds: float = 2.0) -> str:
        """Return the first line that contains all of these words. Fails if none arrives in time."""
        deadline = time.monotonic() + seconds
        while True:
            *lines, _ = self._written.decode(errors="replace").split("\n")
            for line in lines:
                if all(word in line for word in words):
                    return line
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._stream], [], [], left)[0]:
                raise AssertionError(f"no line with {words} on standard error: {lines}")
            chunk = os.read(self._stream, 1 << 16)
            if not chunk:
                raise AssertionError(f"the process ended without a line with {words}: {lines}")
            self._written += chunk

    def all_output(self, rest: bytes) -> str:
        """Return everything that was read, followed by `rest`."""
        return (self._written + rest).decode(errors="replace")


class ReceivedResponse(NamedTuple):
    """An HTTP response that was read completely."""

    status: int
    headers: HTTPMessage
    body: bytes

    def json(self) -> Any:
        assert self.headers["content-type"] == JSON, self
        return msgspec.json.decode(self.body)

    def message(self) -> Any:
        """Return the JSON of the body, or the only message of an event stream."""
        if self.headers.get("content-type") != EVENTS:
            return self.json()
        (message,) = (data for event in self.body.decode().split("\n\n") if (data := event_data(event)))
        return msgspec.json.decode(message)


def event_data(event: str) -> str:
    """Return the data of an event, empty for comments and events that only have an id."""
    fields = re.findall(r"^(\w+): ?(.*)$", event, re.MULTILINE)
    assert {name for name, _ in fields} <= {"id", "event", "data", "retry"}, event
    return "\n".join(value for name, value in fields if name == "data")


class HttpServerProcess:
    """A server process that listens on a free port. It is killed at the end of the `with` block."""

    def __init__(
        self,
        *arguments: str,
        module: str = "dittybag",
        plain: bool = False,
        env: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """`arguments`: those of `dittybag serve` without the address; if `plain`, the whole command line."""
        if module == "dittybag" and not plain:
            arguments = ("serve", "--http", "127.0.0.1:0", *arguments)
        self.process = ForkedProcess(
            module,
            *arguments,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **env},
        )
        assert self.process.stderr is not None
        self.stderr = StderrLines(self.process.stderr)
        self.address = ("", 0)

    def __enter__(self) -> Self:
        try:
            line = self.stderr.wait_for("Dittybag is listening on", seconds=TIMEOUT_SECONDS)
            found = re.search(r"http://(.+):(\d+)/mcp", line)
            assert found is not None, line
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.address = (found[1].strip("[]"), int(found[2]))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Send a signal and wait for the end; returns exit status, standard output and standard error."""
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=TIMEOUT_SECONDS)
        return self.process.returncode, out.decode(), self.stderr.all_output(err)

    @property
    def port(self) -> int:
        return self.address[1]

    def resident_kilobytes(self) -> int:
        """Return how much memory the server uses."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    def connect(self) -> HTTPConnection:
        return HTTPConnection(*self.address, timeout=TIMEOUT_SECONDS)

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = NO_HEADERS
    ) -> ReceivedResponse:
        """Send a request on a new connection and return the response."""
        connection = self.connect()
        try:
            return send_request(connection, method, path, body, headers)
        finally:
            connection.close()

    def get(self, path: str) -> ReceivedResponse:
        return self.ask("GET", path)

    def post(self, value: Any, path: str = "/", *, version: str | None = None) -> ReceivedResponse:
        """POST a JSON value (or bytes as they are) and return the response."""
        body = value if isinstance(value, bytes) else msgspec.json.encode(value)
        version_header = {} if version is None else {"MCP-Protocol-Version": version}
        return self.ask("POST", path, body, {"Content-Type": JSON, "Accept": BOTH, **version_header})


def send_request(
    connection: HTTPConnection, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
) -> ReceivedResponse:
    connection.request(method, path, body, dict(headers))
    response = connection.getresponse()
    return ReceivedResponse(response.status, response.headers, response.read())


class McpHttpClient:
    """A client of `/mcp` that sends its requests one by one on one connection, in a session or without."""

    def __init__(self, host: HttpServerProcess) -> None:
        self.host = host
        self.session: str | None = None
        self.version = ""
        self._connection = host.connect()
        # Every other request accepts only an event stream, so that both kinds of responses are tested.
        self._accept_values = cycle((BOTH, EVENTS))

    def close(self) -> None:
        self._connection.close()

    def exchange(self, frame: bytes) -> Any:
        """Send a frame and return the message in the response, whose status is checked."""
        response = self.post(frame, next(self._accept_values))
        message = response.message()
        self._adopt_session(message, response)
        statuses = STATELESS_STATUSES if routing_headers(frame) else HANDSHAKE_STATUSES
        assert response.status == statuses.get(message.get("error", {}).get("code"), 200), response
        return message

    def notify(self, frame: bytes) -> None:
        response = self.post(frame, BOTH)
        assert (response.status, response.body) == (202, b""), response

    def post(self, frame: bytes, accepted: str) -> ReceivedResponse:
        headers = {"Content-Type": JSON, "Accept": accepted, **self.headers(), **routing_headers(frame)}
        return send_request(self._connection, "POST", "/mcp", frame, headers)

    def headers(self) -> dict[str, str]:
        """Return the headers for every request of the session."""
        session = {} if self.session is None else {"Mcp-Session-Id": self.session}
        return session | ({"MCP-Protocol-Version": self.version} if self.version else {})

    def end_session(self) -> None:
        assert send_request(self._connection, "DELETE", "/mcp", None, self.headers()).status == 204
        self.session = None

    def _adopt_session(self, message: Any, response: ReceivedResponse) -> None:
        """Use the session that a response opens."""
        if "mcp-session-id" in response.headers:
            assert self.session is None
            self.session = response.headers["mcp-session-id"]
            agreed: str = message["result"]["protocolVersion"]
            self.version = agreed if agreed >= FIRST_WITH_HEADER else ""


def routing_headers(frame: bytes) -> dict[str, str]:
    """Return the headers in which a stateless request repeats parts of its body."""
    try:
        message = msgspec.json.decode(frame)
        version = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return {}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": message["method"]}
    if (named := NAME_MEMBERS.get(message["method"])) is not None:
        headers["Mcp-Name"] = message["params"][named]
    return headers


class EventStreamReader:
    """Reads a stream of server-sent events."""

    def __init__(self, response: HTTPResponse, connection: socket) -> None:
        self._response = response
        self._socket = connection

    def message(self, seconds: float = TIMEOUT_SECONDS) -> Any:
        """Return the next message. Fails if none arrives in time."""
        deadline = time.monotonic() + seconds
        event = ""
        while True:
            left = deadline - time.monotonic()
            assert left > 0, f"no message within {seconds} s"
            self._socket.settimeout(left)
            try:
                line = self._response.readline().decode()
            except TimeoutError:
                raise AssertionError(f"no message within {seconds} s") from None
            assert line, "the stream has ended"
            event += line
            if line == "\n":
                if data := event_data(event):
                    return msgspec.json.decode(data)
                event = ""


@contextmanager
def open_event_stream(
    host: HttpServerProcess, method: str, frame: bytes | None, headers: Mapping[str, str]
) -> Iterator[EventStreamReader]:
    """Send a request and read its response as an event stream."""
    connection = host.connect()
    try:
        connection.request(method, "/mcp", frame, {"Accept": EVENTS, **headers})
        # `getresponse` may detach the socket from the connection.
        open_socket = connection.sock
        response = connection.getresponse()
        assert (response.status, response.headers["content-type"]) == (200, EVENTS), response.read()
        yield EventStreamReader(response, open_socket)
    finally:
        connection.close()
