"""The fixture server over HTTP with additional tools: `python -m …http_fixture_server OPTIONS`."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from dittybag.http.application import HttpApplication
from dittybag.http.endpoint import HttpEndpoint, HttpLimits
from dittybag.http.host_checks import HostCheck
from dittybag.http.http_request import HttpRequest
from dittybag.http.http_sessions import MemorySessionRegistry
from dittybag.http.uvicorn_server import (
    GRACE_SECONDS,
    listening_socket,
    new_event_loop,
    serve,
)
from dittybag.protocol.argument_schemas import NoArguments
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server
from tests.everything.everything_server import build

#: How long `counts` waits for the expected values.
COUNTS_TIMEOUT: Final = 3.0


class FixtureOptions(Struct, frozen=True, kw_only=True):
    """The options of the fixture server."""

    limits: HttpLimits = HttpLimits()
    registered: int = 10_000
    origins: tuple[str, ...] = ()
    #: Only the everything server, at `/mcp`: clients also probe the paths of other services, and a response
    #: there would mislead them.
    is_bare: bool = False


class FixtureEchoArguments(Struct):
    text: str


class SizeArguments(Struct):
    size: Annotated[int, Meta(ge=0)]


class OpenCounts(Struct):
    streams: int
    sessions: int
    #: The number of change listeners.
    audience: int
    #: The number of running `hold` calls.
    held: int


class ExpectedCounts(Struct):
    streams: int | None = None
    sessions: int | None = None
    audience: int | None = None
    held: int | None = None


def add_tools(server: Server) -> None:
    """Add tools that echo text, return long text, and send notifications."""

    @server.tool(
        "echo", FixtureEchoArguments, description="Returns the text in the next iteration of the event loop"
    )
    async def echo(arguments: FixtureEchoArguments, ctx: Context) -> str:
        await asyncio.sleep(0)
        return arguments.text

    @server.tool("task", description="Returns whether one task runs the whole call")
    async def task(arguments: NoArguments, ctx: Context) -> str:
        first = asyncio.current_task()
        # This raises an error outside of a task.
        async with asyncio.timeout(5):
            await asyncio.sleep(0)
        return str(first is not None and first is asyncio.current_task())

    @server.tool("long", SizeArguments, description="Returns a text of this size")
    def long(arguments: SizeArguments, ctx: Context) -> str:
        return "x" * arguments.size

    @server.tool("announce", SizeArguments, description="Sends this number of tool list changes")
    async def announce(arguments: SizeArguments, ctx: Context) -> str:
        for _ in range(arguments.size):
            server.tools_changed()
            await asyncio.sleep(0)
        return "announced"


def add_hold_tools(server: Server, endpoint: HttpEndpoint) -> None:
    """Add `hold`, which runs until `release` is called, and `counts`."""
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

    @server.tool("release", description="Ends all hold calls")
    def release(arguments: NoArguments, ctx: Context) -> str:
        released.set()
        released.clear()
        return "done"

    def current_counts() -> OpenCounts:
        audience = len(server._listeners)
        return OpenCounts(streams=endpoint.streams, sessions=endpoint.sessions, audience=audience, held=held)

    @server.tool(
        "counts",
        ExpectedCounts,
        description="Returns what is open, as soon as it is as expected",
        output=OpenCounts,
    )
    async def counts(arguments: ExpectedCounts, ctx: Context) -> OpenCounts:
        expected = msgspec.structs.asdict(arguments).items()
        clock = asyncio.get_running_loop().time
        deadline = clock() + COUNTS_TIMEOUT
        found = current_counts()
        while (
            any(count not in (None, getattr(found, name)) for name, count in expected) and clock() < deadline
        ):
            await asyncio.sleep(0.005)
            found = current_counts()
        return found


async def refuse_other_paths(request: HttpRequest) -> bool:
    if request.path != "/mcp":
        await request.respond(404)
    return request.path != "/mcp"


async def run(options: FixtureOptions) -> None:
    server = build()
    endpoint = HttpEndpoint(server, registry=MemorySessionRegistry(options.registered), limits=options.limits)
    middlewares: list[Any] = [HostCheck(origins=options.origins), endpoint]
    if options.is_bare:
        middlewares.insert(1, refuse_other_paths)
    else:
        add_tools(server)
        add_hold_tools(server, endpoint)
    with listening_socket("127.0.0.1", 0) as listener:
        async with server.lifespan():
            print(listener.getsockname()[1], flush=True)
            application = HttpApplication(middlewares)
            await serve(application, listener, lambda: endpoint.close(GRACE_SECONDS / 2))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run(msgspec.json.decode(sys.argv[1], type=FixtureOptions)))
