"""Programs in `benchmarks/clients/` that connect to a server and call it, as real clients do.

A program reads requests from standard input and writes a response to each, one line of JSON: `open` connects
to a server and lists its tools, `load` calls a tool for some seconds, and `close` disconnects.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import msgspec
from msgspec import Struct
from tests.interop.environments import NODE, Environment, install, python

from benchmarks.load_result import LoadResult, ServerFailed
from benchmarks.processes import children, cpu_seconds, memory, with_children

PROGRAMS: Final = Path(__file__).parent / "clients"


class ClientProgram(Struct, frozen=True):
    """A client and the environment that it needs."""

    title: str
    program: str
    environment: Environment

    def command(self) -> list[str]:
        """Install the client, and return its command."""
        install(self.environment)
        program = str(PROGRAMS / self.program)
        if self.environment.language == "python":
            return [str(python(self.environment)), program]
        return [str(NODE), program, str(self.environment.home)]


class ToolCalls(Struct, frozen=True):
    """The calls of a tool: arguments, a text of the result, and a note that gives a call its length."""

    tool: str
    calls: list[tuple[dict[str, Any], str, str]]


class Start(Struct, frozen=True):
    """The seconds from the start of a connection to two responses."""

    initialize: float
    tools: float
    #: The CPU seconds of a server that the client started, until it has listed its tools.
    cpu: float = 0.0


class ClientProcess:
    """A running client program. Leaving the context kills it and the server that it started."""

    def __init__(self, command: Sequence[str]) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the client
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        with contextlib.suppress(BrokenPipeError):
            self._process.__exit__(kind, error, trace)
        self._errors.close()

    def open(self, server: Mapping[str, Any], calls: ToolCalls | None = None) -> Start:
        """Connect to a server, and list its tools. `server`: its command and variables, or its URL."""
        plan = {"do": "open", **server}
        if calls is not None:
            plan |= {"tool": calls.tool, "calls": calls.calls}
        response = self._ask(plan)
        return msgspec.convert({**response, "cpu": cpu_seconds(self._server_pids())}, Start)

    def load(
        self, seconds: float, *, at_a_time: int = 1, most: int | None = None, server: int | None = None
    ) -> LoadResult:
        """Call the tool. `server` is the server's process id; without it, the client's child process."""
        plan: dict[str, Any] = {"do": "load", "seconds": seconds, "at_a_time": at_a_time}
        if most is not None:
            plan["most"] = most
        before = self._server_cpu(server)
        response = self._ask(plan)
        return msgspec.convert({**response, "server_cpu": self._server_cpu(server) - before}, LoadResult)

    def server_memory(self) -> int:
        """Return the memory of the server that the client started, in bytes."""
        return memory(self._server_pids())

    def close(self) -> None:
        self._ask({"do": "close"})

    def _server_cpu(self, server: int | None) -> float:
        return cpu_seconds(self._server_pids() if server is None else with_children(server))

    def _server_pids(self) -> list[int]:
        return [each for child in children(self._process.pid) for each in with_children(child)]

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(msgspec.json.encode(request) + b"\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise ServerFailed(self._errors.read()[-3000:].decode(errors="replace").strip())
        return msgspec.json.decode(line, type=dict[str, Any])
