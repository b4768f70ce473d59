"""A server process with a raw stdio client. Every wait has a timeout."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from tests.forked_processes import ROOT, ForkedProcess

__all__ = ["ROOT", "StdioServerProcess"]


class StdioServerProcess:
    """A server process that is sent raw frames."""

    def __init__(
        self,
        module: str,
        *arguments: str,
        env: dict[str, str] | None = None,
        prefix: Sequence[str] = (),
        cwd: Path = ROOT,
    ) -> None:
        """`prefix`: a program that starts the server."""
        pipe = subprocess.PIPE
        environment = {**os.environ, **(env or {})}
        self.process: subprocess.Popen[bytes]
        if prefix:
            command = [*prefix, sys.executable, "-m", module, *arguments]
            self.process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, cwd=cwd, env=environment
            )
        else:
            self.process = ForkedProcess(
                module, *arguments, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, env=environment, cwd=cwd
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.to_server = self.process.stdin.fileno()
        self.from_server = self.process.stdout.fileno()
        self._unread = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.communicate()

    def send(self, *frames: bytes) -> None:
        """Write frames, each as a line."""
        self.write(b"".join(frame + b"\n" for frame in frames))

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.to_server, view) :]

    def line(self, seconds: float = 10.0) -> bytes:
        """Return the server's next line. Fails after the timeout."""
        deadline = time.monotonic() + seconds
        searched = 0
        while (end := self._unread.find(b"\n", searched)) < 0:
            searched = len(self._unread)
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.from_server], [], [], left)[0]:
                raise AssertionError(f"no output within {seconds} s")
            chunk = os.read(self.from_server, 1 << 20)
            if not chunk:
                raise AssertionError(f"the server closed its output; unread: {bytes(self._unread[:200])!r}")
            self._unread += chunk
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line

    def message(self, seconds: float = 10.0) -> Any:
        """Return the server's next message."""
        return msgspec.json.decode(self.line(seconds))

    def ask(self, message: dict[str, Any], seconds: float = 10.0) -> Any:
        """Send a request and return the next message, which must be its response."""
        self.send(msgspec.json.encode(message))
        answer = self.message(seconds)
        assert answer.get("id") == message["id"], answer
        return answer

    def handshake(self, version: str = "2025-11-25", capabilities: dict[str, Any] | None = None) -> Any:
        """Open the session and return the result of `initialize`."""
        answer = self.ask(
            {
                "jsonrpc": "2.0",
                "id": "initialize",
                "method": "initialize",
                "params": {
                    "protocolVersion": version,
                    "capabilities": capabilities or {},
                    "clientInfo": {"name": "test", "version": "1"},
                },
            }
        )
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return answer["result"]

    def hang_up(self) -> None:
        """Close the server's input."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None

    def rest(self, seconds: float = 10.0) -> tuple[list[bytes], str, int]:
        """Wait until the server ends; return its remaining lines, standard error and exit status."""
        out, err = self.process.communicate(timeout=seconds)
        lines = bytes(self._unread + out).split(b"\n")
        assert lines.pop() == b"", "the last line has no newline"
        self._unread.clear()
        return lines, err.decode(errors="replace"), self.process.returncode

    def resident_kilobytes(self) -> int:
        """Return the server's resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])
