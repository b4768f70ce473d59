"""Decoding of long frames in a thread, so that the event loop goes on with the messages of other clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dittybag.protocol.jsonrpc import LONG_BYTES, Decoded, decode
from dittybag.protocol.lazy_asyncio import asyncio

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_executor: ThreadPoolExecutor | None = None


def decode_in_thread(frame: bytes) -> asyncio.Future[Decoded]:
    """Decode a long frame. The future raises `MalformedFrame`."""
    global _executor  # noqa: PLW0603  # started on first use
    if _executor is None:
        from concurrent.futures import ThreadPoolExecutor

        # One thread: several would only compete for the interpreter lock.
        _executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="dittybag-decoder")
    return asyncio.get_running_loop().run_in_executor(_executor, decode, frame)


async def decode_body(body: bytes) -> Decoded:
    """Decode a frame of any length. Raises `MalformedFrame`."""
    return await decode_in_thread(body) if len(body) > LONG_BYTES else decode(body)
