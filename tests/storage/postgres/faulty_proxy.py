"""A TCP proxy between a store and its server that can break connections during a commit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto

COMMIT = b"COMMIT\0"
#: Only writers send this.
LOCK = b"pg_advisory_xact_lock"


class CommitFault(Enum):
    """What happens to the next commit of a writer."""

    NONE = auto()
    #: The connection is cut before the server receives it.
    REQUEST_LOST = auto()
    #: The server commits, but the connection is cut before its response arrives.
    RESPONSE_LOST = auto()
    #: The connection is cut, and the server receives the commit a little later.
    REQUEST_DELAYED = auto()


class FaultyProxy:
    """Forwards data between clients and a server."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self.port = 0
        #: The faults of the next commits, in order; further commits succeed.
        self.faults: list[CommitFault] = []
        #: Whether the proxy rejects all connections after the next fault.
        self.fails_permanently = False
        self.is_down = False
        self.commits = 0

    def cut(self) -> None:
        """Close all connections."""
        for pair in self._pairs:
            for end in pair:
                end.transport.abort()

    async def serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        if self.is_down:
            to_client.transport.abort()
            return
        server, to_server = await asyncio.open_connection("127.0.0.1", self._server_port)
        pair = (to_client, to_server)
        self._pairs.add(pair)
        with suppress(OSError):
            try:
                await asyncio.gather(
                    self._forward_to_server(client, server, *pair), self._forward_to_client(server, to_client)
                )
            finally:
                self._pairs.discard(pair)
                for end in pair:
                    end.transport.abort()

    async def _forward_to_client(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        while data := await server.read(1 << 16):
            to_client.write(data)
            await to_client.drain()
        to_client.transport.abort()

    async def _forward_to_server(
        self,
        client: asyncio.StreamReader,
        server: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        to_server: asyncio.StreamWriter,
    ) -> None:
        writing = False
        while data := await client.read(1 << 16):
            writing = writing or LOCK in data
            if writing and data.endswith(COMMIT):
                self.commits += 1
                if self.faults and (fault := self.faults.pop(0)) is not CommitFault.NONE:
                    await self._fail_commit(fault, data, to_client, to_server)
                    return
            to_server.write(data)
            await to_server.drain()
        to_server.transport.abort()

    async def _fail_commit(
        self,
        fault: CommitFault,
        data: bytes,
        to_client: asyncio.StreamWriter,
        to_server: asyncio.StreamWriter,
    ) -> None:
        self.is_down = self.is_down or self.fails_permanently
        if fault is not CommitFault.RESPONSE_LOST:
            to_client.transport.abort()
        if fault is CommitFault.REQUEST_DELAYED:
            # By now the client has reconnected, and waits for the lock that this connection holds.
            await asyncio.sleep(0.3)
        if fault is not CommitFault.REQUEST_LOST:
            to_client.transport.abort()
            to_server.write(data)
            await to_server.drain()
            # The server closes the connection when it is done.
            to_server.write_eof()
            await asyncio.sleep(0.05)
        to_server.transport.abort()


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
        proxy.cut()
        # Let every connection notice.
        await asyncio.sleep(0.02)
