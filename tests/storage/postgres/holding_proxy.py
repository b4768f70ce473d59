"""A TCP proxy between a process and its PostgreSQL server that can hold back one response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

#: Only the change feed sends this. Its responses belong to no request, and are never held.
LISTEN = b"LISTEN "


class HoldingProxy:
    """Forwards data, and holds the response that `hold` names until `release`."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._ends: set[asyncio.StreamWriter] = set()
        self._feeds: set[asyncio.StreamWriter] = set()
        self._left = 0
        self._released = asyncio.Event()
        self.port = 0
        #: Set while a response is held.
        self.holding = asyncio.Event()

    def hold(self, number: int) -> None:
        """Hold the response with this number, counted from now on, from 1."""
        self._left = number
        self.holding.clear()
        self._released.clear()

    def release(self) -> None:
        """Pass on everything."""
        self._left = 0
        self._released.set()

    async def serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_connection("127.0.0.1", self._server_port)
        ends = (to_client, to_server)
        self._ends.update(ends)
        with suppress(OSError):
            try:
                await asyncio.gather(self._forward(client, to_server), self._forward_held(server, *ends))
            finally:
                self._ends.difference_update(ends)
                for end in ends:
                    end.transport.abort()

    async def _forward(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 16):
            if LISTEN in data:
                self._feeds.add(target)
            target.write(data)
            await target.drain()
        target.transport.abort()

    async def _forward_held(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, to_server: asyncio.StreamWriter
    ) -> None:
        while data := await source.read(1 << 16):
            if self._left and to_server not in self._feeds:
                self._left -= 1
                if not self._left:
                    self.holding.set()
                    await self._released.wait()
            target.write(data)
            await target.drain()
        target.transport.abort()

    def close(self) -> None:
        self.release()
        for end in self._ends:
            end.transport.abort()


@asynccontextmanager
async def run_holding_proxy(server_port: int) -> AsyncIterator[HoldingProxy]:
    """Run a proxy to a server on this machine."""
    proxy = HoldingProxy(server_port)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listener.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listener.close()
        proxy.close()
        # Let every connection notice.
        await asyncio.sleep(0.02)
