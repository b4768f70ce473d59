"""Run the everything server over HTTP: `python -m tests.conformance.everything_http`."""

from __future__ import annotations

import sys

from dittybag.http.application import HttpApplication
from dittybag.http.endpoint import HttpEndpoint
from dittybag.http.host_checks import HostCheck
from dittybag.http.http_request import HttpRequest
from dittybag.http.uvicorn_server import (
    GRACE_SECONDS,
    listening_socket,
    new_event_loop,
    serve,
)
from dittybag.protocol.lazy_asyncio import asyncio
from tests.everything.everything_server import build


async def main() -> None:
    server = build()
    endpoint = HttpEndpoint(server)

    async def refuse_other_paths(request: HttpRequest) -> bool:
        # Clients also probe the paths of other services. An MCP response there would mislead them.
        if request.path != "/mcp":
            await request.respond(404)
        return request.path != "/mcp"

    with listening_socket("127.0.0.1", 0) as listener:
        async with server.lifespan():
            address = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
            print(f"The everything server is listening on {address}", file=sys.stderr, flush=True)
            application = HttpApplication([HostCheck(), refuse_other_paths, endpoint])
            await serve(application, listener, lambda: endpoint.close(GRACE_SECONDS / 2))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main())
