"""A client over HTTP that costs next to nothing: questions encoded beforehand, on sockets, in one loop.

A question is sent on a connection as soon as the one before it is answered there. Answers are kept as they
came, and checked when nobody is waiting any more.
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
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import msgspec
from msgspec import Struct, field

from benchmarks.stdio_client import ServerFailed

HOST: Final = "127.0.0.1"
STATELESS: Final = "2026-07-28"
HANDSHAKE: Final = "2025-11-25"

_READ_BYTES: Final = 1 << 18
#: A server that takes longer than this to start, to answer or to end is stuck.
_PATIENCE_SECONDS: Final = 30.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Question(Struct, frozen=True):
    """A whole HTTP request, and what its result must be like."""

    wire: bytes
    id: int
    is_right: Callable[[Any], bool]


def call(number: int, version: str, tool: str, arguments: Any, is_right: Callable[[Any], bool]) -> Question:
    """A call of a tool, with the headers that clients of this revision send."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    headers = {
        # Any port will do; some servers want one.
        "Host": f"{HOST}:8000",
        "User-Agent": "benchmark/1",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": version,
    }
    if version == STATELESS:
        about: dict[str, Any] = {"protocolVersion": version, "clientCapabilities": {}}
        about["clientInfo"] = {"name": "benchmark", "version": "1"}
        params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in about.items()}
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": tool}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
    return Question(request(headers, body), number, is_right)


def request(headers: Mapping[str, str], body: bytes, length: int | None = None) -> bytes:
    """A POST request as it is sent. `length`: what it says of its body, if that is not true."""
    said = {**headers, "Content-Length": str(len(body) if length is None else length)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in said.items())
    return f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body


class Load(Struct, frozen=True):
    """What came of a load."""

    #: Questions that were answered, a second.
    rate: float
    #: Seconds from a question to its answer.
    median: float
    p99: float
    #: The part of one core that each side used.
    client: float
    server: float | None

    @property
    def cost(self) -> float | None:
        """The seconds of a core that the server used for a question, whoever else was running."""
        return None if self.server is None else self.server / self.rate


class _Connection:
    __slots__ = ("asked", "partial", "receive", "send", "sent_at")

    def __init__(self, opened: socket.socket) -> None:
        self.send = opened.send
        self.receive = opened.recv
        self.partial = b""
        self.asked = 0
        self.sent_at = 0.0


class HttpServer:
    """A running server. Use it as `with`: it ends with it, and so do the processes it has started."""

    def __init__(
        self, command: Callable[[int], Sequence[str]], variables: Mapping[str, str] | None = None
    ) -> None:
        """`command`: for a port to listen at."""
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
            self._wait_until_it_listens()
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

    def _wait_until_it_listens(self) -> None:
        patience = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                self.connected().close()
            except ConnectionRefusedError:
                if self._process.poll() is not None or time.monotonic() > patience:
                    raise self._failure("the server does not listen") from None
                time.sleep(0.01)
            else:
                return

    def connected(self) -> socket.socket:
        """A new connection to it."""
        opened = socket.create_connection((HOST, self.port), _PATIENCE_SECONDS)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return opened

    def ask(self, questions: Sequence[Question], connections: int, seconds: float) -> Load:
        """Keep so many connections busy for some time."""
        with contextlib.ExitStack() as stack:
            opened = [stack.enter_context(self.connected()) for _ in range(connections)]
            busy_before, client_before = self._processor_seconds(), time.process_time()
            gc.disable()
            try:
                took, latencies, answers = self._ask(questions, opened, seconds)
            finally:
                gc.enable()
            client, busy = time.process_time() - client_before, self._processor_seconds()
        _check(questions, answers)
        latencies.sort()
        return Load(
            rate=len(latencies) / took,
            median=latencies[len(latencies) // 2],
            p99=latencies[int(0.99 * (len(latencies) - 1))],
            client=client / took,
            server=None if busy is None or busy_before is None else (busy - busy_before) / took,
        )

    def _ask(
        self, questions: Sequence[Question], opened: Sequence[socket.socket], seconds: float
    ) -> tuple[float, list[float], list[tuple[int, bytes]]]:
        """The seconds it took, those of each question, and the answers with the places of their questions."""
        connections = {each.fileno(): _Connection(each) for each in opened}
        wires = [question.wire for question in questions]
        places = itertools.cycle(range(len(wires))).__next__
        poll = select.poll()
        latencies: list[float] = []
        answers: list[tuple[int, bytes]] = []
        now, patience, waiting = time.perf_counter, _PATIENCE_SECONDS * 1000, len(connections)
        begun = now()
        end = begun + seconds
        for descriptor, connection in connections.items():
            poll.register(descriptor, select.POLLIN)
            connection.asked = places()
            connection.sent_at = now()
            connection.send(wires[connection.asked])
        while waiting:
            ready = poll.poll(patience)
            if not ready:
                raise self._failure("the server is stuck")
            for descriptor, _ in ready:
                connection = connections[descriptor]
                chunk = connection.receive(_READ_BYTES)
                answer = connection.partial + chunk if connection.partial else chunk
                if not _is_whole(answer):
                    if not chunk:
                        raise self._failure(f"the server hung up after {answer[:500]!r}")
                    connection.partial = answer
                    continue
                at = now()
                latencies.append(at - connection.sent_at)
                answers.append((connection.asked, answer))
                connection.partial = b""
                if at >= end:
                    waiting -= 1
                    continue
                connection.asked = places()
                connection.sent_at = now()
                connection.send(wires[connection.asked])
        return now() - begun, latencies, answers

    def memory(self) -> int:
        """The bytes of all its processes that are in memory now."""
        pids = self._pids()
        if pids is None:
            command = ["ps", "-o", "rss=", "-p", str(self._process.pid)]
            return int(subprocess.run(command, capture_output=True, check=True).stdout) * 1024
        statuses = [Path(f"/proc/{pid}/status").read_text() for pid in pids]
        lines = [line for status in statuses for line in status.splitlines() if line.startswith("VmRSS:")]
        return sum(int(line.split()[1]) for line in lines) * 1024

    def _processor_seconds(self) -> float | None:
        """What all its processes have used, where that can be known."""
        pids = self._pids()
        if pids is None:
            return None
        return sum(int(used) for pid in pids for used in _stat(pid)[11:13]) / _TICKS

    def _pids(self) -> list[int] | None:
        if not Path("/proc/self/stat").exists():
            return None
        found = []
        for name in os.listdir("/proc"):  # noqa: PTH208  # the names are what is wanted
            # Processes end meanwhile.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if name.isdigit() and int(_stat(int(name))[2]) == self._process.pid:
                    found.append(int(name))
        return found

    def _failure(self, what: str) -> ServerFailed:
        self._errors.seek(0)
        said = self._errors.read()[-2000:].decode(errors="replace").strip()
        return ServerFailed(f"{what}; it said: {said or 'nothing'}")


def _stat(pid: int) -> list[str]:
    """The fields after the command's name: the state, the parent, the group, ..."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


def _is_whole(answer: bytes) -> bool:
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = answer[:end].lower()
    at = head.find(b"\r\ncontent-length:")
    if at < 0:
        raise ServerFailed(f"an answer without a length: {answer[:500]!r}")
    return len(answer) >= end + 4 + int(head[at + 17 :].split(b"\r", 1)[0])


class _Answer(Struct):
    id: int
    result: Any = field(default=None)


def _check(questions: Sequence[Question], answers: Sequence[tuple[int, bytes]]) -> None:
    """Make sure that every question was answered rightly. The same answer need not be looked at twice."""
    right: dict[int, bytes] = {}
    for place, answer in answers:
        head, _, body = answer.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise ServerFailed(f"unexpected answer: {answer[:500]!r}")
        if right.get(place) == body:
            continue
        question = questions[place]
        try:
            found = msgspec.json.decode(body, type=_Answer)
            is_right = found.id == question.id and question.is_right(found.result)
        except (msgspec.DecodeError, LookupError, TypeError) as problem:
            raise ServerFailed(f"unexpected answer ({problem!r}): {answer[:1000]!r}") from problem
        if not is_right:
            raise ServerFailed(f"question {question.id} was answered with something else: {body[:500]!r}")
        right[place] = body
