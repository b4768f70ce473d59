"""Idempotent tool calls: a call with a key runs once, and repeats of it return the stored result."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct

from dittybag.domain.errors import AlreadyDone, StorageError
from dittybag.domain.idempotency import MAX_RESULT_BYTES, StoredResult
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.request_context import Context
from dittybag.protocol.types import Text, ToolResult
from dittybag.services.idempotency_service import DuplicateCall, IdempotencyService, IdempotentCall

#: How long after a call ran its result may still be on its way to the store.
_RESULT_GRACE_MICROSECONDS: Final = 2_000_000
_POLL_SECONDS: Final = 0.05

_log = logging.getLogger("dittybag")

#: Running calls, which continue even if the client has disconnected.
_running: set[asyncio.Future[ToolResult]] = set()


class _EncodedResult(Struct):
    """A result in its stored form."""

    content: tuple[Text, ...]
    structured: Any
    is_error: bool


_decode: Final = msgspec.json.Decoder(_EncodedResult).decode


def keyed_call(owner: str, key: str, ctx: Context, project: int | str) -> IdempotentCall:
    """Return a tool call with its key and digest. `owner` is empty for the owner of the machine.

    `project`: the id of the project, or the path of the folder whose project it is.
    """
    request = (ctx.params.get("name"), ctx.params.get("arguments") or {}, project)
    return IdempotentCall(owner, key, sha256(msgspec.json.encode(request, order="sorted")).digest())


async def run_idempotently(
    call: IdempotentCall, idempotency: IdempotencyService, run: Callable[[], Awaitable[ToolResult]]
) -> ToolResult:
    """Run a call, or return the stored result if it has run before.

    Raises `KeyReused`, or `AlreadyDone` if the result is no longer known.
    """
    # The call continues if the client disconnects, so that a retry finds the result.
    running = asyncio.ensure_future(_run_or_replay(call, idempotency, run))
    _running.add(running)
    running.add_done_callback(_on_done)
    return await asyncio.shield(running)


def _on_done(call: asyncio.Future[ToolResult]) -> None:
    _running.discard(call)
    if not call.cancelled():
        # Retrieve the exception: asyncio logs it otherwise if the client has disconnected.
        call.exception()


async def _run_or_replay(
    call: IdempotentCall, idempotency: IdempotencyService, run: Callable[[], Awaitable[ToolResult]]
) -> ToolResult:
    stored, _ = await idempotency.find(call)
    if stored is None:
        try:
            result = await run()
        except DuplicateCall as before:
            # A concurrent call with this key was faster.
            stored = before.stored
        else:
            if call.is_done:
                await _store_result(call, idempotency, result)
            return result
    return await _replay(call, idempotency, stored)


async def _store_result(call: IdempotentCall, idempotency: IdempotencyService, result: ToolResult) -> None:
    texts = tuple(block for block in result.content if isinstance(block, Text))
    encoded = msgspec.json.encode(_EncodedResult(texts, result.structured_content, result.is_error))
    if len(encoded) > MAX_RESULT_BYTES or len(texts) < len(result.content):
        return
    try:
        await idempotency.save_result(call, encoded)
    except StorageError as error:
        # The call itself succeeded, so the client gets its result.
        _log.warning("the result of a call could not be stored: %s", error.report)


async def _replay(call: IdempotentCall, idempotency: IdempotencyService, stored: StoredResult) -> ToolResult:
    """Wait for the stored result of a call that has run, and return it."""
    found: StoredResult | None = stored
    while found is not None and found.result is None:
        found, now = await idempotency.find(call)
        if found is not None and found.result is None:
            if not 0 <= now - found.at < _RESULT_GRACE_MICROSECONDS:
                raise AlreadyDone(found.at, found.first, found.last)
            await asyncio.sleep(_POLL_SECONDS)
    if found is None or not found.result:
        raise AlreadyDone(stored.at, stored.first, stored.last)
    result = _decode(found.result)
    return ToolResult(content=result.content, structured_content=result.structured, is_error=result.is_error)
