"""An HTTP client with minimal overhead: requests encoded in advance, raw sockets, one loop.

Each connection sends its next request as soon as the previous response is complete. Responses are stored and
checked after the load.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import IO, Any, Final, Self

import msgspec
from msgspec import Struct, field

from benchmarks import processes
from benchmarks.load_result import LoadResult, ServerFailed

HOST: Final = "127.0.0.1"
STATELESS: Final = "2026-07-28"

_READ_BYTES: Final = 1 << 18
#: Timeout for the start of a server and for a response.
_TIMEOUT_SECONDS: Final = 30.0


class PreparedRequest(Struct, frozen=True):
    """An encoded HTTP request, with a check of its result."""

    raw: bytes
    id: int
    is_valid: Callable[[Any], bool]


def call(
    number: int, version: str, tool: str, arguments: Any, is_valid: Callable[[Any], bool]
) -> PreparedRequest:
    """Return a tool call with the headers of this protocol revision."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    headers = {
        # Some servers require a port; any will do.
        "Host": f"{HOST}:8000",
        "User-Agent": "benchmark/1",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": version,
    }
    if version == STATELESS:
        meta: dict[str, Any] = {"protocolVersion": version, "clientCapabilities": {}}
        meta["clientInfo"] = {"name": "benchmark", "version": "1"}
        params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()}
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": tool}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
    return PreparedRequest(encode_request(headers, body), number, is_valid)


def encode_request(headers: Mapping[str, str], body: bytes) -> bytes:
    """Encode a POST request."""
    all_headers = {**headers, "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in all_headers.items())
    return f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body


class _Connection:
    __slots__ = ("partial", "receive", "request_index", "send", "sent_at")

    def __init__(self, opened: socket.socket) -> None:
        self.send = opened.send
        self.receive = opened.recv
        self.partial = b""
        self.request_index = 0
        self.sent_at = 0.0


class HttpServer:
    """A server process. Leaving the context kills it and its child processes."""

    def __init__(
        self, command: Callable[[int], Sequence[str]], variables: Mapping[str, str] | None = None
    ) -> None:
        """`command`: returns the command for a port."""
        with socket.create_server((HOST, 0)) as free:
            self.port: int = free.getsockname()[1]
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the server
        names = ("PATH", "HOME", "LANG", "TMPDIR")
        self._process = subprocess.Popen(
            command(self.port),
            env={name: os.environ[name] for name in names if name in os.environ} | dict(variables or {}),
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        try:
            self._wait_until_listening()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._errors.close()

    def _wait_until_listening(self) -> None:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while True:
            try:
                self.connect().close()
            except ConnectionRefusedError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise self._failure("the server did not start to listen") from None
                time.sleep(0.01)
            else:
                return

    def connect(self) -> socket.socket:
        """Open a connection to the server."""
        opened = socket.create_connection((HOST, self.port), _TIMEOUT_SECONDS)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return opened

    def run_load(self, requests: Sequence[PreparedRequest], connections: int, seconds: float) -> LoadResult:
        """Keep a number of connections busy for `seconds`, and check all responses."""
        return run_load([self], requests, connections, seconds)

    @property
    def pid(self) -> int:
        """The id of the server's first process."""
        return self._process.pid

    def memory(self) -> int:
        """Return the resident memory of all server processes, in bytes."""
        return processes.memory(processes.with_children(self.pid))

    def processor_seconds(self) -> float:
        """Return the CPU seconds of all server processes."""
        return processes.cpu_seconds(processes.with_children(self.pid))

    def _failure(self, what: str) -> ServerFailed:
        self._errors.seek(0)
        output = self._errors.read()[-2000:].decode(errors="replace").strip()
        return ServerFailed(f"{what}; its output: {output or 'none'}")


def run_load(
    servers: Sequence[HttpServer], requests: Sequence[PreparedRequest], connections: int, seconds: float
) -> LoadResult:
    """Keep connections busy for `seconds`, distributed evenly over servers, and check all responses."""
    with contextlib.ExitStack() as stack:
        turns = itertools.islice(itertools.cycle(servers), connections)
        opened = [stack.enter_context(server.connect()) for server in turns]
        before, client_before = _processor_seconds(servers), time.process_time()
        gc.disable()
        try:
            took, latencies, responses = _keep_busy(requests, opened, seconds)
        finally:
            gc.enable()
        client, busy = time.process_time() - client_before, _processor_seconds(servers) - before
    _check(requests, responses)
    latencies.sort()
    return LoadResult(
        calls=len(latencies),
        seconds=took,
        median=latencies[len(latencies) // 2],
        p99=latencies[int(0.99 * (len(latencies) - 1))],
        client_cpu=client,
        server_cpu=busy,
    )


def _processor_seconds(servers: Sequence[HttpServer]) -> float:
    return sum(server.processor_seconds() for server in servers)


def _keep_busy(
    requests: Sequence[PreparedRequest], opened: Sequence[socket.socket], seconds: float
) -> tuple[float, list[float], list[tuple[int, bytes]]]:
    """Return the total seconds, the latencies, and the responses with the indexes of their requests."""
    connections = {each.fileno(): _Connection(each) for each in opened}
    raw_requests = [request.raw for request in requests]
    next_index = itertools.cycle(range(len(raw_requests))).__next__
    poll = select.poll()
    latencies: list[float] = []
    responses: list[tuple[int, bytes]] = []
    now, timeout, waiting = time.perf_counter, _TIMEOUT_SECONDS * 1000, len(connections)
    started = now()
    end = started + seconds
    for descriptor, connection in connections.items():
        poll.register(descriptor, select.POLLIN)
        connection.request_index = next_index()
        connection.sent_at = now()
        connection.send(raw_requests[connection.request_index])
    while waiting:
        ready = poll.poll(timeout)
        if not ready:
            raise ServerFailed("a server did not respond")
        for descriptor, _ in ready:
            connection = connections[descriptor]
            chunk = connection.receive(_READ_BYTES)
            response = connection.partial + chunk if connection.partial else chunk
            if not _is_complete(response):
                if not chunk:
                    raise ServerFailed(f"the server closed the connection after {response[:500]!r}")
                connection.partial = response
                continue
            at = now()
            latencies.append(at - connection.sent_at)
            responses.append((connection.request_index, response))
            connection.partial = b""
            if at >= end:
                waiting -= 1
                continue
            connection.request_index = next_index()
            connection.sent_at = now()
            connection.send(raw_requests[connection.request_index])
    return now() - started, latencies, responses


def _is_complete(response: bytes) -> bool:
    end = response.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = response[:end].lower()
    at = head.find(b"\r\ncontent-length:")
    if at < 0:
        raise ServerFailed(f"a response without Content-Length: {response[:500]!r}")
    return len(response) >= end + 4 + int(head[at + 17 :].split(b"\r", 1)[0])


class _RpcResponse(Struct):
    id: int
    result: Any = field(default=None)


def _check(requests: Sequence[PreparedRequest], responses: Sequence[tuple[int, bytes]]) -> None:
    """Check every response. Identical responses to the same request are checked once."""
    checked: dict[int, bytes] = {}
    for index, response in responses:
        head, _, body = response.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise ServerFailed(f"unexpected response: {response[:500]!r}")
        if checked.get(index) == body:
            continue
        request = requests[index]
        try:
            found = msgspec.json.decode(body, type=_RpcResponse)
            is_valid = found.id == request.id and request.is_valid(found.result)
        except (msgspec.DecodeError, LookupError, TypeError) as error:
            raise ServerFailed(f"unexpected response ({error!r}): {response[:1000]!r}") from error
        if not is_valid:
            raise ServerFailed(f"request {request.id} has a wrong result: {body[:500]!r}")
        checked[index] = body
