"""A stdio client with minimal overhead, so that benchmarks measure the server."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import IO, Final, Self

import msgspec

from benchmarks import processes

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


class ServerFailed(Exception):
    """A server ended or sent an unexpected response."""


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

    def memory(self) -> int:
        """Return the server's resident memory in bytes."""
        return processes.memory([self._process.pid])

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
