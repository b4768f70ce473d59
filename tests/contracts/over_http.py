"""`dittybag serve --http` as a process, and clients of it whose every wait is bounded."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPMessage, HTTPResponse
from itertools import cycle
from socket import socket
from types import MappingProxyType, TracebackType
from typing import IO, Any, NamedTuple, Self

import msgspec

from tests.wire import ROOT

Json = dict[str, Any]

SECONDS = 10.0
JSON = "application/json"
EVENTS = "text/event-stream"
BOTH = f"{JSON}, {EVENTS}"
#: The member of the parameters that a stateless request repeats in a header.
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
#: The first version whose clients repeat it in every request.
FIRST_WITH_HEADER = "2025-06-18"

#: The statuses of errors; those of all others are 200.
HANDSHAKE_STATUSES = {-32700: 400, -32600: 400}
STATELESS_STATUSES = HANDSHAKE_STATUSES | {-32601: 404}

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Complaints:
    """What a process writes to standard error, line by line."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream.fileno()
        self._written = bytearray()
        self._read = 0

    def line(self, *words: str, seconds: float = 2.0) -> str:
        """A line with all of these words, which comes in time."""
        deadline = time.monotonic() + seconds
        while True:
            *lines, _ = self._written.decode(errors="replace").split("\n")
            for line in lines:
                if all(word in line for word in words):
                    return line
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._stream], [], [], left)[0]:
                raise AssertionError(f"no complaint with {words}, but: {lines}")
            chunk = os.read(self._stream, 1 << 16)
            if not chunk:
                raise AssertionError(f"it has ended, without {words}, but with: {lines}")
            self._written += chunk

    def whole(self, rest: bytes) -> str:
        """Everything, when the process has ended and this was what it said last."""
        return (self._written + rest).decode(errors="replace")


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    headers: HTTPMessage
    body: bytes

    def json(self) -> Any:
        assert self.headers["content-type"] == JSON, self
        return msgspec.json.decode(self.body)

    def message(self) -> Any:
        """The JSON of the body, or the one message of a stream."""
        if self.headers.get("content-type") != EVENTS:
            return self.json()
        (message,) = (data for event in self.body.decode().split("\n\n") if (data := data_of(event)))
        return msgspec.json.decode(message)


def data_of(event: str) -> str:
    """The data of an event of a stream; nothing for comments and for an event that only has an id."""
    fields = re.findall(r"^(\w+): ?(.*)$", event, re.MULTILINE)
    assert {name for name, _ in fields} <= {"id", "event", "data", "retry"}, event
    return "\n".join(value for name, value in fields if name == "data")


class Host:
    """A process that listens on a free port, until it is left."""

    def __init__(
        self,
        *arguments: str,
        module: str = "dittybag",
        plain: bool = False,
        env: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """`arguments`: those of `dittybag serve`, without where to listen; or all of a `plain` command."""
        if module == "dittybag" and not plain:
            arguments = ("serve", "--http", "127.0.0.1:0", *arguments)
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, **env},
        )
        assert self.process.stderr is not None
        self.complaints = Complaints(self.process.stderr)
        self.address = ("", 0)

    def __enter__(self) -> Self:
        try:
            line = self.complaints.line("Dittybag listens at", seconds=SECONDS)
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
        """End it in the usual way: its exit status, and what it had written to stdout and to stderr."""
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, out.decode(), self.complaints.whole(err)

    def connect(self) -> HTTPConnection:
        return HTTPConnection(*self.address, timeout=SECONDS)

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = NO_HEADERS
    ) -> Answer:
        """The answer to one request, on a connection of its own."""
        connection = self.connect()
        try:
            return asked(connection, method, path, body, headers)
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def post(self, value: Any, path: str = "/", *, version: str | None = None) -> Answer:
        """The answer to a JSON value, or to bytes that claim to be one."""
        body = value if isinstance(value, bytes) else msgspec.json.encode(value)
        spoken = {} if version is None else {"MCP-Protocol-Version": version}
        return self.ask("POST", path, body, {"Content-Type": JSON, "Accept": BOTH, **spoken})


def asked(
    connection: HTTPConnection, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
) -> Answer:
    connection.request(method, path, body, dict(headers))
    answer = connection.getresponse()
    return Answer(answer.status, answer.headers, answer.read())


class HttpClient:
    """A client at a host's `/mcp`: one request after the other on one connection, in a session or not."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.session: str | None = None
        self.version = ""
        self._connection = host.connect()
        # Every other request takes only a stream, so that both kinds of answers are seen.
        self._accepted = cycle((BOTH, EVENTS))

    def close(self) -> None:
        self._connection.close()

    def exchange(self, frame: bytes) -> Any:
        """The answer to a frame of any kind, which has the status that it should have."""
        answer = self.post(frame, next(self._accepted))
        message = answer.message()
        self._note(message, answer)
        statuses = STATELESS_STATUSES if routing(frame) else HANDSHAKE_STATUSES
        assert answer.status == statuses.get(message.get("error", {}).get("code"), 200), answer
        return message

    def notify(self, frame: bytes) -> None:
        answer = self.post(frame, BOTH)
        assert (answer.status, answer.body) == (202, b""), answer

    def post(self, frame: bytes, accepted: str) -> Answer:
        headers = {"Content-Type": JSON, "Accept": accepted, **self.headers(), **routing(frame)}
        return asked(self._connection, "POST", "/mcp", frame, headers)

    def headers(self) -> dict[str, str]:
        """What belongs to every request of the session."""
        session = {} if self.session is None else {"Mcp-Session-Id": self.session}
        return session | ({"MCP-Protocol-Version": self.version} if self.version else {})

    def end_session(self) -> None:
        assert asked(self._connection, "DELETE", "/mcp", None, self.headers()).status == 204
        self.session = None

    def _note(self, message: Any, answer: Answer) -> None:
        """Keep to the session that an answer opens."""
        if "mcp-session-id" in answer.headers:
            assert self.session is None
            self.session = answer.headers["mcp-session-id"]
            agreed: str = message["result"]["protocolVersion"]
            self.version = agreed if agreed >= FIRST_WITH_HEADER else ""


def routing(frame: bytes) -> dict[str, str]:
    """The headers in which a stateless request repeats what its body says."""
    try:
        message = msgspec.json.decode(frame)
        version = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return {}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": message["method"]}
    if (named := NAMED.get(message["method"])) is not None:
        headers["Mcp-Name"] = message["params"][named]
    return headers


class Events:
    """A stream of events that a server sends."""

    def __init__(self, answer: HTTPResponse, connection: socket) -> None:
        self._answer = answer
        self._socket = connection

    def message(self, seconds: float = SECONDS) -> Any:
        """The next message, which comes in time."""
        deadline = time.monotonic() + seconds
        event = ""
        while True:
            left = deadline - time.monotonic()
            assert left > 0, f"no message within {seconds} s"
            self._socket.settimeout(left)
            try:
                line = self._answer.readline().decode()
            except TimeoutError:
                raise AssertionError(f"no message within {seconds} s") from None
            assert line, "the stream has ended"
            event += line
            if line == "\n":
                if data := data_of(event):
                    return msgspec.json.decode(data)
                event = ""


@contextmanager
def listening(host: Host, method: str, frame: bytes | None, headers: Mapping[str, str]) -> Iterator[Events]:
    """The stream that is the answer to a request."""
    connection = host.connect()
    try:
        connection.request(method, "/mcp", frame, {"Accept": EVENTS, **headers})
        taken = connection.sock
        answer = connection.getresponse()
        assert (answer.status, answer.headers["content-type"]) == (200, EVENTS), answer.read()
        yield Events(answer, taken)
    finally:
        connection.close()
