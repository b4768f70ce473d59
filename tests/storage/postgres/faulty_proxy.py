"""A TCP proxy between a store and its server. It breaks connections, holds responses or passes on nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto
from typing import Final

COMMIT: Final = b"COMMIT\0"
#: Only writers send this.
LOCK: Final = b"lock_writers"
#: Statements of writers that are sent once on a connection, and then executed by their name.
CALL: Final = b"commit_writes("
SETTLE: Final = b"settle_commit("
#: Messages that prepare a statement with a name, and execute it; see
#: https://www.postgresql.org/docs/current/protocol-message-formats.html.
PARSE: Final = b"P"
BIND: Final = b"B"
MESSAGE_START: Final = 5
#: Only the change feed sends this. Its responses belong to no request, and are never held.
LISTEN: Final = b"LISTEN "

#: Maximum duration of a wait for the client or the server.
SECONDS: Final = 10


class CommitFault(Enum):
    """What happens to the next commit of a writer."""

    NONE = auto()
    #: The connection is cut before the server receives it.
    REQUEST_LOST = auto()
    #: The server commits, but the connection is cut before its response arrives.
    RESPONSE_LOST = auto()
    #: The connection is cut, and the server receives the commit when the client asks for its outcome.
    REQUEST_DELAYED = auto()


class FaultyProxy:
    """Forwards data between clients and a server."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._left = 0
        self._released = asyncio.Event()
        self.port = 0
        #: The faults of the next commits, in order; further commits succeed.
        self.faults: list[CommitFault] = []
        #: The faults of the next questions for the outcome of a commit.
        self.settle_faults: list[CommitFault] = []
        #: Whether the proxy rejects all connections after the next fault.
        self.fails_permanently = False
        self.is_down = False
        #: Whether all data disappears, as in a network that drops packets without telling anybody.
        self.swallows = False
        self.commits = 0
        #: Set when a writer has asked for the outcome of a commit.
        self.settling = asyncio.Event()
        #: Whether nothing gets through, in either direction, until `fill_hole`. No end notices it.
        self._hole_ended = asyncio.Event()
        self._hole_ended.set()
        #: Set while a response is held.
        self.holding = asyncio.Event()

    def cut(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            connection.abort()

    def forget(self) -> None:
        """Let the data of all present connections disappear, as a firewall does that was restarted."""
        for connection in self._connections:
            connection.is_forgotten = True

    def hold(self, number: int) -> None:
        """Hold the response with this number, counted from now on, from 1."""
        self._left = number
        self.holding.clear()
        self._released.clear()

    def release(self) -> None:
        """Pass on everything."""
        self._left = 0
        self._released.set()

    def open_hole(self) -> None:
        """Let nothing through until `fill_hole`, like a network that loses packets: they are sent again."""
        self._hole_ended.clear()

    def fill_hole(self) -> None:
        self._hole_ended.set()

    async def pass_hole(self) -> None:
        await self._hole_ended.wait()

    async def close(self) -> None:
        """Close all connections, and wait until their ends have noticed."""
        self.release()
        self.fill_hole()
        self.cut()
        await asyncio.gather(*self._tasks)

    async def serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        if self.is_down:
            to_client.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await self.pass_hole()
        server, to_server = await asyncio.open_connection("127.0.0.1", self._server_port)
        connection = _Connection(self, client, to_client, server, to_server)
        self._connections.add(connection)
        try:
            await connection.forward()
        finally:
            self._connections.discard(connection)
            connection.abort()

    async def wait_if_held(self) -> None:
        """Count a response, and wait if it is the one to hold."""
        if self._left:
            self._left -= 1
            if not self._left:
                self.holding.set()
                await self._released.wait()


class _Connection:
    """A client's connection and the proxy's own to the server."""

    def __init__(
        self,
        proxy: FaultyProxy,
        client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._client = client
        self._to_client = to_client
        self._server = server
        self._to_server = to_server
        self._is_feed = False
        self._is_writer = False
        #: Whether all further data disappears.
        self.is_forgotten = False
        #: The prepared statements, by name: `CALL`, `SETTLE` or another one.
        self._statements: dict[bytes, bytes] = {}

    def abort(self) -> None:
        self._to_client.transport.abort()
        self._to_server.transport.abort()

    async def forward(self) -> None:
        """Forward data in both directions until the server closes the connection."""
        requests = asyncio.create_task(self._forward_requests())
        with suppress(OSError):
            await self._forward_responses()
        requests.cancel()
        with suppress(OSError, asyncio.CancelledError):
            await requests

    async def _forward_responses(self) -> None:
        while data := await self._server.read(1 << 16):
            if not self._is_feed:
                await self._proxy.wait_if_held()
            if self._proxy.swallows or self.is_forgotten:
                continue
            await self._proxy.pass_hole()
            # The client may be gone; the server still has to be read until it ends.
            with suppress(ConnectionError):
                self._to_client.write(data)
                await self._to_client.drain()

    async def _forward_requests(self) -> None:
        while data := await self._client.read(1 << 16):
            if self._proxy.swallows or self.is_forgotten:
                continue
            await self._proxy.pass_hole()
            self._is_feed = self._is_feed or LISTEN in data
            self._is_writer = self._is_writer or LOCK in data
            if (fault := self._next_fault(data)) is not CommitFault.NONE:
                await self._fail_commit(fault, data)
                return
            self._to_server.write(data)
            await self._to_server.drain()
            if self._executed(data) == SETTLE:
                self._proxy.settling.set()
        self._to_server.transport.abort()

    def _next_fault(self, data: bytes) -> CommitFault:
        if self._executed(data) == SETTLE:
            faults = self._proxy.settle_faults
        elif self._executed(data) == CALL or (self._is_writer and data.endswith(COMMIT)):
            self._proxy.commits += 1
            faults = self._proxy.faults
        else:
            return CommitFault.NONE
        return faults.pop(0) if faults else CommitFault.NONE

    def _executed(self, data: bytes) -> bytes:
        """Return which of the statements of writers a request executes: `CALL`, `SETTLE` or none."""
        fields = data[MESSAGE_START:].split(b"\0", 2)
        if data.startswith(PARSE):
            self._statements[fields[0]] = next((text for text in (CALL, SETTLE) if text in fields[1]), b"")
        return self._statements.get(fields[1], b"") if data.startswith(BIND) else b""

    async def _fail_commit(self, fault: CommitFault, data: bytes) -> None:
        proxy = self._proxy
        proxy.is_down = proxy.is_down or proxy.fails_permanently
        proxy.settling.clear()
        self._to_client.transport.abort()
        if fault is CommitFault.REQUEST_LOST:
            self._to_server.transport.abort()
            return
        if fault is CommitFault.REQUEST_DELAYED:
            await asyncio.wait_for(proxy.settling.wait(), SECONDS)
        self._to_server.write(data)
        # The server closes the connection when it is done.
        self._to_server.write_eof()


@asynccontextmanager
async def run_proxy(server_port: int) -> AsyncIterator[FaultyProxy]:
    """Run a proxy to a server on this machine."""
    proxy = FaultyProxy(server_port)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listener.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listener.close()
        await proxy.close()
