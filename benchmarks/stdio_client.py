"""A client that costs next to nothing, so that what is measured is the server."""

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
#: A server that takes longer than this for one measurement is stuck.
_PATIENCE_SECONDS: Final = 300.0

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
    """A server ended, or did not answer as it must."""


class _Text(Struct):
    text: str


class _ToolResult(Struct):
    content: list[_Text]


class _Answer(Struct):
    id: int
    result: _ToolResult


_decode_answer: Final = msgspec.json.Decoder(_Answer).decode


class Calls:
    """Calls of the tool `echo`, encoded beforehand."""

    def __init__(self, count: int) -> None:
        self.texts = {number: f"message {number}" for number in range(2, count + 2)}
        self.frames = [
            b'{"jsonrpc":"2.0","id":%d,"method":"tools/call",'
            b'"params":{"name":"echo","arguments":{"text":"message %d"}}}\n' % (number, number)
            for number in self.texts
        ]

    def check(self, answers: bytes, *, in_order: bool) -> None:
        """Make sure that every call was answered once, and rightly."""
        lines = answers.splitlines()
        try:
            heard = [_decode_answer(line) for line in lines]
        except msgspec.DecodeError as problem:
            raise ServerFailed(f"unexpected answer: {problem}") from problem
        ids = [answer.id for answer in heard]
        if (ids if in_order else sorted(ids)) != list(self.texts):
            raise ServerFailed(f"{len(self.texts)} calls, but the answers do not match them one to one")
        for answer in heard:
            if [block.text for block in answer.result.content] != [self.texts[answer.id]]:
                raise ServerFailed(f"call {answer.id} was answered with another text")


def _surroundings() -> dict[str, str]:
    """The same few variables for all: others, like `PYTHONDONTWRITEBYTECODE`, change what is measured."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}


class Connection:
    """A running server and the two pipes to it. Use it as `with`: the server ends with it."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the connection
        self._process = subprocess.Popen(
            command,
            env=_surroundings() | dict(variables or {}),
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
        # Takes care of the pipes as well.
        self._process.__exit__(kind, error, trace)
        self._errors.close()

    def greet(self) -> None:
        """Open the conversation: returns when the answer to `initialize` is there."""
        answer = self._ask(_INITIALIZE + b"\n")
        if VERSION.encode() not in answer:
            raise ServerFailed(f"unexpected answer to initialize: {answer!r}")

    def list_tools(self) -> None:
        """Finish the handshake and list the tools, like every client does first."""
        answer = self._ask(_INITIALIZED + _LIST)
        if b'"echo"' not in answer:
            raise ServerFailed(f"unexpected answer to tools/list: {answer!r}")

    def call_one_by_one(self, calls: Calls) -> float:
        """Send each call when the one before it has been answered. Returns the seconds it took."""
        to, source, answers = self._to, self._from, bytearray()
        with self._watched():
            start = time.perf_counter()
            for frame in calls.frames:
                os.write(to, frame)
                answer = os.read(source, _READ_BYTES)
                answers += answer
                if not answer.endswith(b"\n"):
                    answers += self._rest_of_line(answer)
            seconds = time.perf_counter() - start
        calls.check(bytes(answers), in_order=True)
        return seconds

    def call_all_at_once(self, calls: Calls) -> float:
        """Keep the pipe to the server full, and read what comes. Returns the seconds it took."""
        unsent = memoryview(b"".join(calls.frames))
        left = len(calls.frames)
        chunks: list[bytes] = []
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        poll.register(self._to, select.POLLOUT)
        os.set_blocking(self._to, False)
        with self._watched():
            start = time.perf_counter()
            while left:
                for descriptor, _ in poll.poll():
                    if descriptor == self._from:
                        chunks.append(self._read())
                        left -= chunks[-1].count(b"\n")
                        continue
                    # Not writable after all is no surprise: a pipe may have less room than was asked for.
                    with contextlib.suppress(BlockingIOError):
                        unsent = unsent[os.write(self._to, unsent) :]
                    if not unsent:
                        poll.unregister(self._to)
            seconds = time.perf_counter() - start
        os.set_blocking(self._to, True)
        calls.check(b"".join(chunks), in_order=False)
        return seconds

    def memory(self) -> int:
        """The bytes of the server that are in memory now."""
        pid = self._process.pid
        status = Path(f"/proc/{pid}/status")
        if status.exists():
            line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
            return int(line.split()[1]) * 1024
        asked = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=True)
        return int(asked.stdout) * 1024

    def _ask(self, frames: bytes) -> bytes:
        with self._watched():
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
            raise self._failure("the server ended or was stuck")
        return chunk

    def _failure(self, what: str) -> ServerFailed:
        self._errors.seek(0)
        said = self._errors.read()[-2000:].decode(errors="replace").strip()
        return ServerFailed(f"{what}; it said: {said or 'nothing'}")

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """End a server that is stuck, so that nobody waits for it forever, and tell if it is gone."""
        timer = threading.Timer(_PATIENCE_SECONDS, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            yield
        except BrokenPipeError:
            raise self._failure("the server ended") from None
        finally:
            timer.cancel()
