"""The stdio transport: clean protocol output, bounded memory and prompt shutdown."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import tty
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import pytest

from dittybag.protocol.dispatch import Session
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server
from dittybag.protocol.transports.file_descriptors import FrameWriter
from dittybag.protocol.transports.stdio import serve
from tests.stdio_server_process import ROOT, StdioServerProcess

SERVER = "tests.protocol.transports.noisy_server"
PING = b'{"jsonrpc":"2.0","id":"ping","method":"ping"}'
PONG = {"jsonrpc": "2.0", "id": "ping", "result": {}}


@pytest.fixture
def wire() -> Iterator[StdioServerProcess]:
    with StdioServerProcess(SERVER) as wire:
        wire.handshake()
        yield wire


class Pipes:
    """The client's ends of the pipes of a server in this process."""

    def __init__(self) -> None:
        self.source, self._to_server = os.pipe()
        self._from_server, self.sink = os.pipe()
        self._is_open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hang_up()
        os.close(self.source)
        os.close(self._from_server)

    def write(self, data: bytes) -> None:
        os.write(self._to_server, data)

    def read(self) -> bytes:
        return os.read(self._from_server, 65536)

    def read_all(self) -> bytes:
        """Read until the server closes the pipe."""
        return b"".join(iter(self.read, b""))

    def hang_up(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self._to_server)


def call(tool: str, request_id: Any = 1, **arguments: Any) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params})


def has_ended(wire: StdioServerProcess, seconds: float) -> bool:
    try:
        wire.process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def test_printed_output_goes_to_standard_error(wire: StdioServerProcess) -> None:
    wire.send(call("noise"))
    assert wire.message()["result"]["content"][0]["text"] == "quiet"
    wire.hang_up()
    lines, errors, status = wire.rest()
    assert (lines, status) == ([], 0)
    for source in ("the start", "print", "stdout", "descriptor 1", "C", "a warning", "a child", "the end"):
        assert f"from {source}" in errors


def test_messages_can_be_split_and_joined_across_writes(wire: StdioServerProcess) -> None:
    for piece in (PING[:1], PING[1:20], PING[20:], b"\n"):
        wire.write(piece)
    assert wire.message() == PONG
    wire.write(b"\n\r\n  \n" + PING + b"\r\n" + PING + b"\n\n" + PING[:5])
    wire.write(PING[5:] + b"\n")
    assert [wire.message() for _ in range(3)] == [PONG] * 3


def test_the_last_message_needs_no_line_break(wire: StdioServerProcess) -> None:
    wire.write(PING)
    wire.hang_up()
    lines, _, status = wire.rest()
    assert [msgspec.json.decode(line) for line in lines] == [PONG]
    assert status == 0


@pytest.mark.parametrize("id_first", [True, False])
def test_a_message_over_the_limit_is_refused_with_its_id_and_the_next_one_works(*, id_first: bool) -> None:
    with StdioServerProcess(SERVER, env={"MESSAGE_BYTES": "10000"}) as wire:
        wire.handshake()
        blob = b'"params":{"name":"echo","arguments":{"text":"' + b"x" * 20_000 + b'"}}'
        if id_first:
            wire.send(b'{"jsonrpc":"2.0","id":7,"method":"tools/call",' + blob + b"}")
        else:
            wire.send(b'{"method":"tools/call",' + blob + b',"jsonrpc":"2.0","id":7}')
        refused = wire.message()
        assert (refused["id"], refused["error"]["code"]) == (7, -32600)
        assert "at most 10000 bytes" in refused["error"]["message"]
        wire.send(PING)
        assert wire.message() == PONG
        at_the_limit = PING + b" " * (10_000 - len(PING))
        wire.send(at_the_limit, at_the_limit + b" ")
        assert wire.message() == PONG
        assert wire.message()["error"]["code"] == -32600


def test_an_endless_line_does_not_increase_memory_use(wire: StdioServerProcess) -> None:
    before = wire.resident_kilobytes()
    chunk = b"x" * (1 << 20)
    wire.write(b'{"jsonrpc":"2.0","id":99,"method":"')
    highest = 0
    for megabyte in range(1024):
        wire.write(chunk)
        if megabyte % 64 == 0:
            highest = max(highest, wire.resident_kilobytes())
    assert highest - before < 32 * 1024
    wire.write(b'"}\n' + PING + b"\n")
    refused = wire.message()
    assert (refused["id"], refused["error"]["code"]) == (99, -32600)
    assert wire.message() == PONG


def test_a_client_that_does_not_read_is_not_read_from(wire: StdioServerProcess) -> None:
    before = wire.resident_kilobytes()
    os.set_blocking(wire.to_server, False)
    frame = call("big", characters=200_000) + b"\n"
    sent = 0
    unsent = b""
    deadline = time.monotonic() + 20
    blocked_since: float | None = None
    # Write until the server stops reading. It must not buffer without limit.
    while time.monotonic() < deadline and sent < 4000:
        try:
            unsent = (unsent or frame)[os.write(wire.to_server, unsent or frame) :]
        except BlockingIOError:
            blocked_since = blocked_since or time.monotonic()
            if time.monotonic() - blocked_since > 0.5:
                break
            continue
        blocked_since = None
        sent += not unsent
    assert sent < 4000, "the server kept reading although its responses were not read"
    assert wire.resident_kilobytes() - before < 32 * 1024
    os.set_blocking(wire.to_server, True)
    for _ in range(sent):
        assert wire.message()["result"]["isError"] is False
    wire.write(unsent)
    if unsent:
        wire.message()
    wire.send(PING)
    assert wire.message() == PONG


def test_responses_larger_than_a_pipe_buffer_arrive_complete(wire: StdioServerProcess) -> None:
    wire.send(call("big", characters=5_000_000), PING)
    assert len(wire.message()["result"]["content"][0]["text"]) == 5_000_000
    assert wire.message() == PONG


def test_pipelined_requests_are_all_answered_in_order(wire: StdioServerProcess) -> None:
    wire.send(*(call("big", request_id=number, characters=3) for number in range(2000)))
    assert [wire.message()["id"] for _ in range(2000)] == list(range(2000))


def test_a_fast_client_does_not_starve_the_event_loop(wire: StdioServerProcess) -> None:
    frame, to, source = call("calls_between_turns") + b"\n", wire.to_server, wire.from_server
    for _ in range(5000):
        os.write(to, frame)
        os.read(source, 1000)
    wire.send(frame.strip())
    assert int(wire.message()["result"]["content"][0]["text"]) <= 21


def test_closing_the_input_lets_requests_finish_and_ends_the_process(wire: StdioServerProcess) -> None:
    started = time.monotonic()
    wire.send(call("wait", request_id="short", seconds=0.2), call("wait", request_id="long", seconds=60))
    wire.hang_up()
    lines, _, status = wire.rest()
    responses = {response["id"]: response for response in map(msgspec.json.decode, lines)}
    assert status == 0
    assert responses["short"]["result"]["content"][0]["text"] == "waited"
    assert responses["long"]["error"]["message"] == "The server is shutting down"
    assert time.monotonic() - started < 3


@pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_shuts_down_the_process_cleanly(
    wire: StdioServerProcess, stop_signal: signal.Signals
) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    listen = {"_meta": meta, "notifications": {"toolsListChanged": True}}
    wire.send(
        msgspec.json.encode(
            {"jsonrpc": "2.0", "id": "listen", "method": "subscriptions/listen", "params": listen}
        )
    )
    assert wire.message()["method"] == "notifications/subscriptions/acknowledged"
    wire.process.send_signal(stop_signal)
    lines, errors, status = wire.rest()
    (closed,) = map(msgspec.json.decode, lines)
    assert (closed["id"], closed["result"]["resultType"]) == ("listen", "complete")
    assert status == 0
    assert "Traceback" not in errors


def test_a_signal_during_shutdown_does_not_change_the_exit_status() -> None:
    for _ in range(10):
        with StdioServerProcess(SERVER) as wire:
            wire.send(PING)
            wire.message()
            wire.hang_up()
            # Send many signals, so that some arrive during shutdown.
            for _ in range(5000):
                if has_ended(wire, seconds=0.001):
                    break
                wire.process.send_signal(signal.SIGTERM)
            assert wire.process.returncode == 0


def test_a_stuck_thread_does_not_keep_the_process_alive(wire: StdioServerProcess) -> None:
    wire.send(call("stuck"))
    wire.hang_up()
    _, _, status = wire.rest(seconds=6)
    assert status == 0


def test_the_process_ends_when_the_client_disappears(wire: StdioServerProcess) -> None:
    assert wire.process.stdout is not None
    wire.process.stdout.close()
    wire.send(PING)
    wire.process.stdout = None
    assert wire.process.wait(timeout=5) == 0


def test_input_and_output_can_be_regular_files(tmp_path: Path) -> None:
    requests, responses = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    requests.write_bytes(b"".join(call("big", request_id=n, characters=10) + b"\n" for n in range(500)))
    with requests.open("rb") as source, responses.open("wb") as sink:
        command = [sys.executable, "-m", SERVER]
        subprocess.run(command, stdin=source, stdout=sink, cwd=ROOT, timeout=20, check=True)
    assert [msgspec.json.decode(line)["id"] for line in responses.read_bytes().splitlines()] == list(
        range(500)
    )


def test_a_server_started_without_input_exits_immediately() -> None:
    command = [sys.executable, "-m", SERVER]
    run = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, cwd=ROOT, timeout=20, check=True
    )
    assert run.stdout == b""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_server_started_with_closed_streams_exits_cleanly(closed: str) -> None:
    command = f"'{sys.executable}' -m {SERVER} {closed}"
    frame = PING + b"\n"
    run = subprocess.run(
        ["sh", "-c", command], input=frame, capture_output=True, cwd=ROOT, timeout=20, check=True
    )
    assert [msgspec.json.decode(line) for line in run.stdout.splitlines()] == (
        [PONG] if closed == "2>&-" else []
    )
    assert b"Traceback" not in run.stderr


async def test_a_message_that_cannot_be_handled_is_logged_and_the_next_one_works(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server("plain", "1")

    def fail(session: Session) -> None:
        raise RuntimeError("these roots cannot be handled")

    server.on_roots_changed = fail
    with Pipes() as pipes:
        pipes.write(b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}\n' + PING + b"\n")
        async with asyncio.timeout(10):
            serving = asyncio.create_task(serve(server, pipes.source, pipes.sink))
            assert msgspec.json.decode(await asyncio.to_thread(pipes.read)) == PONG
            pipes.hang_up()
            await serving
    assert "these roots cannot be handled" in caplog.text


async def test_messages_that_were_not_started_when_the_server_stops_are_ignored() -> None:
    server = Server("plain", "1")
    started = asyncio.Event()
    handled = 0

    @server.tool("count")
    def count(arguments: object, ctx: Context) -> str:
        nonlocal handled
        handled += 1
        started.set()
        return "x" * 200_000

    with Pipes() as pipes:
        # More than the server sends to a client that does not read.
        pipes.write((call("count") + b"\n") * 100)
        async with asyncio.timeout(10):
            ended = asyncio.Event()
            serving = asyncio.create_task(serve(server, pipes.source, pipes.sink, ended=ended))
            await started.wait()
            before = handled
            ended.set()
            output = asyncio.create_task(asyncio.to_thread(pipes.read_all))
            await serving
            assert (await output).count(b"\n") == handled == before < 100


async def test_a_non_blocking_terminal_gets_every_byte_once() -> None:
    terminal, sink = os.openpty()
    tty.setraw(sink)
    os.set_blocking(sink, False)
    sent = bytes(range(32, 127)) * 2000
    writer = FrameWriter(asyncio.get_running_loop(), sink, on_disconnect=lambda: None)
    writer.send_message(sent)
    closing = asyncio.create_task(writer.close(10))
    received = b""
    async with asyncio.timeout(10):
        while len(received) <= len(sent):
            received += await asyncio.to_thread(os.read, terminal, 65536)
        await closing
    os.close(terminal)
    assert received == sent + b"\n"


async def test_a_late_message_is_not_written_to_another_file(tmp_path: Path) -> None:
    other = tmp_path / "other"
    source, sink = os.pipe()
    writer = FrameWriter(asyncio.get_running_loop(), sink, on_disconnect=lambda: None)
    await writer.close(1)
    with other.open("wb", buffering=0) as file:
        assert file.fileno() == sink
        writer.send_message(PING)
        writer.flush()
    os.close(source)
    assert other.read_bytes() == b""
