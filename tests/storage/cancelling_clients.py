"""Clients of a `dittybag serve` process that can cancel a request, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from typing import Any, Protocol

import msgspec

from tests.contracts.http_server_process import BOTH, JSON, routing_headers
from tests.stdio_server_process import ROOT

#: Every request is stateless, so that a client that hangs up cancels its request.
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "canceller", "version": "1"},
}
SECONDS = 20.0


class PendingRequest:
    """A request that was sent."""

    def __init__(self, id: int, response: asyncio.Future[Any] | asyncio.Task[Any]) -> None:
        self.id = id
        self.response = response


class CancellingClient(Protocol):
    def send(self, method: str, **params: Any) -> PendingRequest:
        """Send a request without waiting for its response."""
        ...

    async def cancel(self, request: PendingRequest) -> bool:
        """Cancel a request. Returns when the server has noticed: whether it was not complete before."""
        ...


async def ask(client: CancellingClient, method: str, /, **params: Any) -> Any:
    """Send a request and return its result. Fails on an error."""
    message = await asyncio.wait_for(client.send(method, **params).response, SECONDS)
    assert "result" in message, (method, params, message)
    return message["result"]


async def call(client: CancellingClient, tool: str, /, **arguments: Any) -> str:
    """Call a tool and return its text. Fails on an error."""
    result = await ask(client, "tools/call", name=tool, arguments=arguments)
    assert not result["isError"], (tool, arguments, result)
    text: str = result["content"][0]["text"]
    return text


class CancellingStdioClient:
    """A client on the standard streams of a process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to_server = process.stdin
        self._from_server = process.stdout
        self._ids = count(1)
        self._pending: dict[int, asyncio.Future[Any]] = {}

    async def read(self) -> None:
        """Hand each response to its request, until the server ends."""
        while line := await self._from_server.readline():
            message = msgspec.json.decode(line)
            if (future := self._pending.pop(message.get("id"), None)) is not None:
                future.set_result(message)

    def send(self, method: str, **params: Any) -> PendingRequest:
        request_id = next(self._ids)
        future = self._pending[request_id] = asyncio.get_running_loop().create_future()
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, "_meta": META}}
        self._to_server.write(msgspec.json.encode(message) + b"\n")
        return PendingRequest(request_id, future)

    async def cancel(self, request: PendingRequest) -> bool:
        message = {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": request.id, "_meta": META},
        }
        self._to_server.write(msgspec.json.encode(message) + b"\n")
        await ask(self, "server/discover")
        self._pending.pop(request.id, None)
        return not request.response.done()


class CancellingHttpClient:
    """A client that opens a connection for every request, and hangs up to cancel it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ids = count(1)
        self._cancelled = 0
        self._sent: dict[int, asyncio.Event] = {}

    def send(self, method: str, **params: Any) -> PendingRequest:
        request_id = next(self._ids)
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, "_meta": META}}
        sent = self._sent[request_id] = asyncio.Event()
        return PendingRequest(request_id, asyncio.create_task(self._post(msgspec.json.encode(message), sent)))

    async def _post(self, frame: bytes, sent: asyncio.Event) -> Any:
        headers = {"Content-Type": JSON, "Accept": BOTH, **routing_headers(frame)}
        return msgspec.json.decode((await self._exchange("POST /mcp", headers, frame, sent))[1])

    async def get(self, path: str) -> tuple[int, str]:
        """Return the status and the body of a page."""
        status, body = await asyncio.wait_for(
            self._exchange(f"GET {path}", {}, b"", asyncio.Event()), SECONDS
        )
        return status, body.decode()

    async def _exchange(
        self, line: str, headers: dict[str, str], body: bytes, sent: asyncio.Event
    ) -> tuple[int, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            headers = {"Host": f"127.0.0.1:{self._port}", "Content-Length": str(len(body)), **headers}
            head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            writer.write(f"{line} HTTP/1.1\r\n{head}\r\n".encode() + body)
            sent.set()
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            found = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
            assert found is not None, head
            return int(head.split()[1]), await reader.readexactly(int(found[1]))
        finally:
            # Also when this task is cancelled. The server gets what was sent before.
            writer.close()

    async def cancel(self, request: PendingRequest) -> bool:
        assert isinstance(request.response, asyncio.Task)
        await self._sent[request.id].wait()
        request.response.cancel()
        await asyncio.wait([request.response])
        before = self._cancelled
        async with asyncio.timeout(SECONDS):
            while await self._count_ended() < len(self._sent):
                pass
        return self._cancelled > before

    async def _count_ended(self) -> int:
        """Count the requests that have ended, and note how many of them were cancelled."""
        _, metrics = await self.get("/metrics")
        outcomes = re.findall(r'^dittybag_requests_total{.*outcome="(.+)"} (\d+)', metrics, re.MULTILINE)
        self._cancelled = sum(int(number) for outcome, number in outcomes if outcome == "cancelled")
        return sum(int(number) for _, number in outcomes)


@asynccontextmanager
async def serve_stdio(*arguments: str) -> AsyncIterator[CancellingStdioClient]:
    """Run a server, and a client on its standard streams."""
    async with _run("serve", *arguments) as process:
        client = CancellingStdioClient(process)
        reading = asyncio.create_task(client.read())
        try:
            yield client
        finally:
            reading.cancel()


@asynccontextmanager
async def serve_http(*arguments: str) -> AsyncIterator[CancellingHttpClient]:
    """Run a server, and a client of its HTTP endpoint."""
    async with _run("serve", "--http", "127.0.0.1:0", *arguments) as process:
        assert process.stderr is not None
        async with asyncio.timeout(SECONDS):
            while not (
                found := re.search(
                    rb"listening on http://.*:(\d+)/mcp", line := await process.stderr.readline()
                )
            ):
                assert line, "the server has ended"
        yield CancellingHttpClient(int(found[1]))


@asynccontextmanager
async def _run(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "dittybag",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 24,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


TRANSPORTS: dict[str, Callable[..., AbstractAsyncContextManager[CancellingClient]]] = {
    "stdio": serve_stdio,
    "http": serve_http,
}
