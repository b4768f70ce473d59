"""Serves the fixture over HTTP, with more tools for these tests: `python -m ...http.served OPTIONS`."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from dittybag.protocol import Context, NoArguments, Server
from dittybag.protocol.lazy_tls import asyncio
from dittybag.protocol.transports.http import HostCheckMiddleware, HttpEndpoint
from dittybag.protocol.transports.http.endpoint import HttpLimits
from dittybag.protocol.transports.http.http_sessions import MemorySessionRegistry
from dittybag.protocol.transports.http.uvicorn_server import (
    GRACE_SECONDS,
    listening_socket,
    new_event_loop,
    serve,
)
from tests.everything.server import build

#: What is not as wanted by then will not be.
PATIENCE_SECONDS: Final = 3.0


class Options(Struct, frozen=True, kw_only=True):
    """What a test wants otherwise than it is."""

    limits: HttpLimits = HttpLimits()
    registered: int = 10_000
    origins: tuple[str, ...] = ()


class Words(Struct):
    text: str


class Size(Struct):
    size: Annotated[int, Meta(ge=0)]


class Counts(Struct):
    streams: int
    sessions: int
    #: Who is told of changes.
    audience: int
    #: Calls of `hold` that have not ended.
    held: int


class Wanted(Struct):
    streams: int | None = None
    sessions: int | None = None
    audience: int | None = None
    held: int | None = None


def offer(server: Server) -> None:
    """Tools that say what they were told, that are long, and that can be held up."""

    @server.tool("echo", Words, description="Answers with the text, a turn of the loop later")
    async def echo(arguments: Words, ctx: Context) -> str:
        await asyncio.sleep(0)
        return arguments.text

    @server.tool("long", Size, description="Answers with a text of this size")
    def long(arguments: Size, ctx: Context) -> str:
        return "x" * arguments.size

    @server.tool("announce", Size, description="Says so many times that the tools have changed")
    async def announce(arguments: Size, ctx: Context) -> str:
        for _ in range(arguments.size):
            server.tools_changed()
            await asyncio.sleep(0)
        return "announced"


def offer_holding(server: Server, endpoint: HttpEndpoint) -> None:
    """Tools that end when another one is called."""
    held = 0
    released = asyncio.Event()

    @server.tool("hold", description="Reports progress, and ends when release is called")
    async def hold(arguments: NoArguments, ctx: Context) -> str:
        nonlocal held
        held += 1
        ctx.progress(1)
        try:
            await released.wait()
        finally:
            held -= 1
        ctx.progress(2)
        return "released"

    @server.tool("release", description="Ends what is held")
    def release(arguments: NoArguments, ctx: Context) -> str:
        released.set()
        released.clear()
        return "done"

    def counted() -> Counts:
        audience = len(server._listeners)
        return Counts(streams=endpoint.streams, sessions=endpoint.sessions, audience=audience, held=held)

    @server.tool("counts", Wanted, description="What is open, as soon as it is as wanted", output=Counts)
    async def counts(arguments: Wanted, ctx: Context) -> Counts:
        wanted = msgspec.structs.asdict(arguments).items()
        clock = asyncio.get_running_loop().time
        deadline = clock() + PATIENCE_SECONDS
        found = counted()
        while any(count not in (None, getattr(found, name)) for name, count in wanted) and clock() < deadline:
            await asyncio.sleep(0.005)
            found = counted()
        # The counts tell.
        return found


async def run(options: Options) -> None:
    server = build()
    endpoint = HttpEndpoint(server, registry=MemorySessionRegistry(options.registered), limits=options.limits)
    offer(server)
    offer_holding(server, endpoint)
    with listening_socket("127.0.0.1", 0) as listener:
        async with server.lifespan():
            print(listener.getsockname()[1], flush=True)
            host_check = HostCheckMiddleware(endpoint, origins=options.origins)
            await serve(
                host_check,
                listener,
                lambda: endpoint.close(GRACE_SECONDS / 2),
                sync_handlers={b"/mcp": host_check.wrap_sync(endpoint.handle_sync)},
            )


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run(msgspec.json.decode(sys.argv[1], type=Options)))
