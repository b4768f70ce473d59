"""The server for the examples in the protocol contract; `python -m` serves it over HTTP."""

from __future__ import annotations

import asyncio
import sys

from dittybag.http.application import HttpApplication
from dittybag.http.endpoint import HttpEndpoint
from dittybag.http.host_checks import HostCheck
from dittybag.http.uvicorn_server import listening_socket, serve
from tests.contracts.example_server import build


async def run() -> None:
    server = build()
    endpoint = HttpEndpoint(server)
    with listening_socket("127.0.0.1", 0) as listener:
        async with server.lifespan():
            host, port = listener.getsockname()
            print(f"Dittybag is listening on http://{host}:{port}/mcp", file=sys.stderr, flush=True)
            await serve(HttpApplication([HostCheck(), endpoint]), listener, lambda: endpoint.close(1))


if __name__ == "__main__":
    asyncio.run(run())
