"""Serves the fixture over HTTP: `python -m tests.conformance.fixture`, from the root."""

from __future__ import annotations

import sys

from dittybag.protocol.lazy_tls import asyncio
from dittybag.protocol.transports.http import Guard, HttpEndpoint
from dittybag.protocol.transports.http.asgi_messages import Receive, Scope, Send, respond
from dittybag.protocol.transports.http.uvicorn_server import (
    GRACE_SECONDS,
    listening_socket,
    new_event_loop,
    serve,
)
from tests.everything.server import build


async def main() -> None:
    server = build()
    endpoint = HttpEndpoint(server)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        # Clients look for addresses of other services, too: a server that answers MCP there misleads them.
        if scope["path"] == "/mcp":
            await endpoint(scope, receive, send)
        else:
            await respond(send, 404)

    with listening_socket("127.0.0.1", 0) as listener:
        async with server.lifespan():
            address = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
            print(f"The fixture listens at {address}", file=sys.stderr, flush=True)
            guard = Guard(application)
            await serve(
                guard,
                listener,
                lambda: endpoint.close(GRACE_SECONDS / 2),
                at_once={b"/mcp": guard.at_once(endpoint.at_once)},
            )


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main())
