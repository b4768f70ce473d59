"""Sends a file to a browser in pieces, which wait for the browser and not for the disk."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import BinaryIO, Final

from dittybag.http.asgi_messages import Receive, Send
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.web.browser_requests import StreamingResponse
from dittybag.web.template_rendering import SECURITY_HEADERS

_CHUNK_BYTES: Final = 256 * 1024


def file_response(path: str, name: str, *, delete: bool = False) -> StreamingResponse:
    """Return a response that downloads a file as `name`. `delete`: delete the file at the end."""

    async def respond(_receive: Receive, send: Send) -> None:
        file = await asyncio.to_thread(open, path, "rb")
        try:
            await _send_file(file, name, send)
        finally:
            file.close()
            if delete:
                with suppress(OSError):
                    os.unlink(path)  # noqa: PTH108  # pathlib is slow to import

    return respond


async def _send_file(file: BinaryIO, name: str, send: Send) -> None:
    # A file that grows meanwhile must not become longer than announced.
    left = os.fstat(file.fileno()).st_size
    headers = (
        (b"content-type", b"application/octet-stream"),
        (b"content-length", b"%d" % left),
        (b"content-disposition", f'attachment; filename="{name}"'.encode("ascii", "replace")),
        (b"cache-control", b"no-store"),
        *SECURITY_HEADERS,
    )
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    while left > 0 and (chunk := await asyncio.to_thread(file.read, min(left, _CHUNK_BYTES))):
        left -= len(chunk)
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
