"""A session with any MCP server on stdio, in a process group of its own."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import msgspec
from msgspec import Struct

from benchmarks import processes
from benchmarks.load_result import ServerFailed

#: Timeouts for the start, and for a batch of calls.
START_SECONDS: Final = 60.0
CALL_SECONDS: Final = 120.0
#: How long a server may take to end after its input was closed, and after SIGTERM.
_CLOSE_SECONDS: Final = 5.0
_TERMINATE_SECONDS: Final = 2.0
_READ_BYTES: Final = 1 << 20


class McpRequest(Struct, frozen=True):
    """A method and its parameters."""

    method: str
    params: dict[str, Any]


def tool_call(name: str, **arguments: Any) -> McpRequest:
    return McpRequest("tools/call", {"name": name, "arguments": arguments})


_INITIALIZE: Final = McpRequest(
    "initialize",
    {
        "protocolVersion": "2025-11-25",
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
)


class Answer(Struct, frozen=True):
    """The text of a result, or the error instead of it."""

    text: str = ""
    error: str = ""


class ProductSession:
    """A session of a client that has one folder as its root. Leaving the context ends all processes."""

    def __init__(self, command: Sequence[str], project: Path, variables: Mapping[str, str]) -> None:
        start = time.perf_counter()
        self._root = {"uri": project.as_uri(), "name": project.name}
        self._ids = itertools.count(1)
        self._unread = b""
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the session
        self._process = subprocess.Popen(
            command,
            cwd=project,
            env=dict(variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._poll = select.poll()
        self._poll.register(self._from, select.POLLIN)
        try:
            self._result(_INITIALIZE)
            #: Seconds from the start of the process to the response.
            self.initialize_seconds = time.perf_counter() - start
            self._send({"method": "notifications/initialized"})
            #: The definitions of the tools.
            self.tools: list[Any] = self._result(McpRequest("tools/list", {}))["tools"]
            self.tools_seconds = time.perf_counter() - start
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the server as clients do: close its input and wait, then terminate and kill what is left."""
        self._to.close()
        for seconds, end in ((_CLOSE_SECONDS, signal.SIGTERM), (_TERMINATE_SECONDS, signal.SIGKILL)):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
            # Child processes may outlive the server.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, end)
        self._process.wait()
        self._from.close()
        self._errors.close()

    @property
    def memory(self) -> int:
        """The resident memory of the server and its child processes, in bytes."""
        return processes.memory(processes.with_children(self._process.pid))

    @property
    def cpu_seconds(self) -> float:
        """The CPU time of the server and its child processes."""
        return processes.cpu_seconds(processes.with_children(self._process.pid))

    def call(self, *requests: McpRequest) -> list[Answer]:
        """Send requests at once, and return their answers in the order of the requests.

        What is not answered because the server ended or timed out is an error too.
        """
        numbers = [next(self._ids) for _ in requests]
        found: dict[int, Answer] = {}
        deadline = time.monotonic() + CALL_SECONDS
        try:
            for number, request in zip(numbers, requests, strict=True):
                self._send({"id": number, "method": request.method, "params": request.params})
            while len(found) < len(numbers):
                message = self._response(deadline)
                found[message["id"]] = _answer(message)
        except ServerFailed as error:
            return [found.get(number, Answer(error=str(error))) for number in numbers]
        return [found[number] for number in numbers]

    def _result(self, request: McpRequest) -> Any:
        number = next(self._ids)
        self._send({"id": number, "method": request.method, "params": request.params})
        message = self._response(time.monotonic() + START_SECONDS)
        if message["id"] != number or "result" not in message:
            raise ServerFailed(f"unexpected response to {request.method}: {message}")
        return message["result"]

    def _send(self, message: dict[str, Any]) -> None:
        # What the server answered before it ended is read, and then that it ended.
        with contextlib.suppress(BrokenPipeError):
            self._to.write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")

    def _response(self, deadline: float) -> Any:
        """Return the next response; requests of the server that come before it are answered."""
        while True:
            message = self._message(deadline)
            if "method" not in message:
                return message
            if "id" in message:
                known = {"roots/list": {"roots": [self._root]}, "ping": {}}
                reply = (
                    {"result": known[message["method"]]}
                    if message["method"] in known
                    else {"error": {"code": -32601, "message": "Method not found"}}
                )
                self._send({"id": message["id"], **reply})

    def _message(self, deadline: float) -> Any:
        while True:
            while b"\n" not in self._unread:
                left = deadline - time.monotonic()
                if left <= 0 or not self._poll.poll(left * 1000):
                    raise self._failure("the server did not respond in time")
                chunk = os.read(self._from.fileno(), _READ_BYTES)
                if not chunk:
                    raise self._failure("the server ended")
                self._unread += chunk
            line, _, self._unread = self._unread.partition(b"\n")
            # Some servers also print text.
            with contextlib.suppress(msgspec.DecodeError):
                message = msgspec.json.decode(line)
                if isinstance(message, dict):
                    return message

    def _failure(self, what: str) -> ServerFailed:
        self._errors.seek(0)
        output = self._errors.read()[-500:].decode(errors="replace").strip()
        return ServerFailed(f"{what}; its output: {output or 'none'}")


def _answer(message: dict[str, Any]) -> Answer:
    if "error" in message:
        return Answer(error=str(message["error"].get("message")))
    result = message["result"]
    text = "\n".join(part.get("text", "") for part in result["content"])
    return Answer(error=text or "an error without text") if result.get("isError") else Answer(text)
