"""A network between a store and its server that can be cut at the worst moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto

COMMIT = b"COMMIT\0"
#: What only writers say.
LOCK = b"pg_advisory_xact_lock"


class Fate(Enum):
    """What becomes of the next commit of a writer."""

    ARRIVES = auto()
    #: The connection is cut before the server hears of it.
    IS_LOST = auto()
    #: The server does it, but the connection is cut before its answer comes through.
    GOES_UNANSWERED = auto()
    #: The connection is cut, and the server hears of it only a while after.
    COMES_LATE = auto()


class Proxy:
    """Hands on what is said between clients and a server."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self.port = 0
        #: Of the next commits, in order; all further ones arrive.
        self.fates: list[Fate] = []
        #: Whether nobody can connect any more from the moment a commit goes wrong.
        self.goes_down = False
        self.is_down = False
        self.commits = 0

    def cut(self) -> None:
        """End all connections."""
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
                await asyncio.gather(self._upwards(client, server, *pair), self._downwards(server, to_client))
            finally:
                self._pairs.discard(pair)
                for end in pair:
                    end.transport.abort()

    async def _downwards(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        while data := await server.read(1 << 16):
            to_client.write(data)
            await to_client.drain()
        to_client.transport.abort()

    async def _upwards(
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
                if self.fates and (fate := self.fates.pop(0)) is not Fate.ARRIVES:
                    await self._lose(fate, data, to_client, to_server)
                    return
            to_server.write(data)
            await to_server.drain()
        to_server.transport.abort()

    async def _lose(
        self, fate: Fate, data: bytes, to_client: asyncio.StreamWriter, to_server: asyncio.StreamWriter
    ) -> None:
        self.is_down = self.is_down or self.goes_down
        if fate is not Fate.GOES_UNANSWERED:
            to_client.transport.abort()
        if fate is Fate.COMES_LATE:
            # The client is back by now, and waits for the lock that this connection has.
            await asyncio.sleep(0.3)
        if fate is not Fate.IS_LOST:
            to_client.transport.abort()
            to_server.write(data)
            await to_server.drain()
            # It says goodbye only when it is done.
            to_server.write_eof()
            await asyncio.sleep(0.05)
        to_server.transport.abort()


@asynccontextmanager
async def network(server_port: int) -> AsyncIterator[Proxy]:
    """A network to a server on this machine."""
    proxy = Proxy(server_port)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listener.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listener.close()
        proxy.cut()
        # Every connection notices.
        await asyncio.sleep(0.02)
