"""The floor of uvicorn, httptools and uvloop: an endpoint that responds without any validation.

`baseline_uvicorn.py PORT MODE`; the mode `logged` has uvicorn's access log.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from baseline_stdio import BaselineRequest, respond
from msgspec.json import Decoder

decode = Decoder(BaselineRequest).decode


async def application(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    body = b""
    while True:
        event = await receive()
        body += event.get("body", b"")
        if not event.get("more_body"):
            break
    status, response = 405, b""
    if scope["method"] == "POST":
        request = decode(body)
        status, response = (202, b"") if request.id is None else (200, respond(request))
    headers = [
        (b"content-type", b"application/json"),
        (b"mcp-session-id", b"1"),
        (b"content-length", b"%d" % len(response)),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": response})


if __name__ == "__main__":
    port, mode = sys.argv[1:]
    uvicorn.run(
        application,
        host="127.0.0.1",
        port=int(port),
        http="httptools",
        loop="uvloop",
        lifespan="off",
        log_level="info" if mode == "logged" else "warning",
    )
