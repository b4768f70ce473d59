"""The echo server with Dittybag's HTTP endpoint on a given HTTP server: `dittybag_http.py PORT SERVER`."""

from __future__ import annotations

import sys
from pathlib import Path

from dittybag.protocol.lazy_tls import asyncio  # isort: skip  # first: it imports asyncio without TLS

from dittybag_stdio import server

from dittybag.http.application import HttpApplication
from dittybag.http.endpoint import HttpEndpoint
from dittybag.http.host_checks import HostCheck

HOST = "127.0.0.1"

endpoint = HttpEndpoint(server)
application = HttpApplication([HostCheck(), endpoint])


def on_httptools(port: int) -> None:
    """uvicorn with httptools and uvloop, as in `dittybag serve`."""
    from dittybag.http.uvicorn_server import listening_socket, new_event_loop, serve

    with listening_socket(HOST, port) as listener, asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(serve(application, listener, lambda: endpoint.close(0)))


def on_h11(port: int) -> None:
    """uvicorn without httptools and uvloop."""
    import uvicorn

    uvicorn.run(
        application,
        host=HOST,
        port=port,
        http="h11",
        loop="asyncio",
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=False,
    )


def on_granian(port: int) -> None:
    """granian with one worker and its own timeouts."""
    from granian import Granian
    from granian.constants import HTTPModes, Interfaces, Loops
    from granian.http import HTTP1Settings

    Granian(
        "dittybag_http:application",
        address=HOST,
        port=port,
        interface=Interfaces.ASGINL,
        workers=1,
        loop=Loops.uvloop,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=10_000),
        websockets=False,
        log_enabled=False,
        working_dir=Path(__file__).parent,
    ).serve()


SERVERS = {"httptools": on_httptools, "h11": on_h11, "granian": on_granian}

if __name__ == "__main__":
    SERVERS[sys.argv[2]](int(sys.argv[1]))
