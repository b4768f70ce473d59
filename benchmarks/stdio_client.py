"""A stdio client with minimal overhead, so that benchmarks measure the server."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

import msgspec
from msgspec import Struct

VERSION: Final = "2025-11-25"

_READ_BYTES: Final = 1 << 20
#: Timeout for one measurement.
_TIMEOUT_SECONDS: Final = 300.0

_INITIALIZE: Final = msgspec.json.encode(
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": VERSION,
            "capabilities": {},
            "clientInfo": {"name": "benchmark", "version": "1"},
        },
    }
)
_INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
_LIST: Final = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}\n'


class ServerFailed(Exception):
    """A server ended or sent an unexpected response."""


class _Text(Struct):
    text: str


class _ToolResult(Struct):
    content: list[_Text]


class _EchoResponse(Struct):
    id: int
    result: _ToolResult


_decode_response: Final = msgspec.json.Decoder(_EchoResponse).decode


class EchoCalls:
    """Calls of the tool `echo`, encoded in advance."""

    def __init__(self, count: int) -> None:
        self.texts = {number: f"message {number}" for number in range(2, count + 2)}
        self.frames = [
            b'{"jsonrpc":"2.0","id":%d,"method":"tools/call",'
            b'"params":{"name":"echo","arguments":{"text":"message %d"}}}\n' % (number, number)
            for number in self.texts
        ]

    def check(self, output: bytes, *, in_order: bool) -> None:
        """Check that every call has exactly one response, with the right text."""
        lines = output.splitlines()
        try:
            responses = [_decode_response(line) for line in lines]
        except msgspec.DecodeError as error:
            raise ServerFailed(f"unexpected response: {error}") from error
        ids = [response.id for response in responses]
        if (ids if in_order else sorted(ids)) != list(self.texts):
            raise ServerFailed(f"the responses do not match the {len(self.texts)} calls one to one")
        for response in responses:
            if [block.text for block in response.result.content] != [self.texts[response.id]]:
                raise ServerFailed(f"the response to call {response.id} has another text")


def _environment() -> dict[str, str]:
    """Return a minimal environment: variables such as `PYTHONDONTWRITEBYTECODE` affect the results."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}


class StdioServer:
    """A server process with pipes to it. Leaving the context kills it."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the connection
        self._process = subprocess.Popen(
            command,
            env=_environment() | dict(variables or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to = self._process.stdin.fileno()
        self._from = self._process.stdout.fileno()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        # This also closes the pipes.
        self._process.__exit__(kind, error, trace)
        self._errors.close()

    def initialize(self) -> None:
        """Send `initialize` and wait for the response."""
        response = self._request(_INITIALIZE + b"\n")
        if VERSION.encode() not in response:
            raise ServerFailed(f"unexpected response to initialize: {response!r}")

    def list_tools(self) -> None:
        """Finish the handshake and list the tools, as clients do first."""
        response = self._request(_INITIALIZED + _LIST)
        if b'"echo"' not in response:
            raise ServerFailed(f"unexpected response to tools/list: {response!r}")

    def call_sequentially(self, calls: EchoCalls) -> float:
        """Send each call after the response to the previous one. Returns the seconds."""
        to, source, responses = self._to, self._from, bytearray()
        with self._kill_after_timeout():
            start = time.perf_counter()
            for frame in calls.frames:
                os.write(to, frame)
                response = os.read(source, _READ_BYTES)
                responses += response
                if not response.endswith(b"\n"):
                    responses += self._rest_of_line(response)
            seconds = time.perf_counter() - start
        calls.check(bytes(responses), in_order=True)
        return seconds

    def call_pipelined(self, calls: EchoCalls) -> float:
        """Keep the pipe to the server full while reading responses. Returns the seconds."""
        unsent = memoryview(b"".join(calls.frames))
        left = len(calls.frames)
        chunks: list[bytes] = []
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        poll.register(self._to, select.POLLOUT)
        os.set_blocking(self._to, False)
        with self._kill_after_timeout():
            start = time.perf_counter()
            while left:
                for descriptor, _ in poll.poll():
                    if descriptor == self._from:
                        chunks.append(self._read())
                        left -= chunks[-1].count(b"\n")
                        continue
                    # A pipe that is reported as writable may have too little room for the write.
                    with contextlib.suppress(BlockingIOError):
                        unsent = unsent[os.write(self._to, unsent) :]
                    if not unsent:
                        poll.unregister(self._to)
            seconds = time.perf_counter() - start
        os.set_blocking(self._to, True)
        calls.check(b"".join(chunks), in_order=False)
        return seconds

    def memory(self) -> int:
        """Return the server's resident memory in bytes."""
        pid = self._process.pid
        status = Path(f"/proc/{pid}/status")
        if status.exists():
            line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
            return int(line.split()[1]) * 1024
        result = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=True)
        return int(result.stdout) * 1024

    def _request(self, frames: bytes) -> bytes:
        with self._kill_after_timeout():
            os.write(self._to, frames)
            return self._rest_of_line(b"")

    def _rest_of_line(self, line: bytes) -> bytes:
        rest = b""
        while not (line + rest).endswith(b"\n"):
            rest += self._read()
        return rest

    def _read(self) -> bytes:
        chunk = os.read(self._from, _READ_BYTES)
        if not chunk:
            raise self._failure("the server ended or timed out")
        return chunk

    def _failure(self, what: str) -> ServerFailed:
        self._errors.seek(0)
        output = self._errors.read()[-2000:].decode(errors="replace").strip()
        return ServerFailed(f"{what}; its output: {output or 'none'}")

    @contextlib.contextmanager
    def _kill_after_timeout(self) -> Iterator[None]:
        """Kill the server after a timeout, and report if it has ended."""
        timer = threading.Timer(_TIMEOUT_SECONDS, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            yield
        except BrokenPipeError:
            raise self._failure("the server ended") from None
        finally:
            timer.cancel()
