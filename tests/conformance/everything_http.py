"""Run the everything server over HTTP: `python -m tests.conformance.everything_http`."""

from __future__ import annotations

import sys

from dittybag.http.asgi_messages import AsgiScope, Receive, Send, respond
from dittybag.http.endpoint import HttpEndpoint
from dittybag.http.host_checks import HostCheckMiddleware
from dittybag.http.uvicorn_server import (
    GRACE_SECONDS,
    listening_socket,
    new_event_loop,
    serve,
)
from dittybag.protocol.lazy_tls import asyncio
from tests.everything.everything_server import build


async def main() -> None:
    server = build()
    endpoint = HttpEndpoint(server)

    async def application(scope: AsgiScope, receive: Receive, send: Send) -> None:
        # Clients also probe the paths of other services. An MCP response there would mislead them.
        if scope["path"] == "/mcp":
            await endpoint(scope, receive, send)
        else:
            await respond(send, 404)

    with listening_socket("127.0.0.1", 0) as listener:
        async with server.lifespan():
            address = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
            print(f"The everything server is listening on {address}", file=sys.stderr, flush=True)
            host_check = HostCheckMiddleware(application)
            await serve(
                host_check,
                listener,
                lambda: endpoint.close(GRACE_SECONDS / 2),
                sync_handlers={b"/mcp": host_check.wrap_sync(endpoint.handle_sync)},
            )


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main())
