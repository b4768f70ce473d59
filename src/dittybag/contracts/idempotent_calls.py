"""Calls of tools that are carried out once, and answered as often as they come with the same key."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct

from dittybag.domain.errors import AlreadyDone, StorageError
from dittybag.domain.idempotency import ANSWER_BYTES, KeptAnswer
from dittybag.protocol import Context, ToolResult
from dittybag.protocol.lazy_tls import asyncio
from dittybag.protocol.types import Text
from dittybag.services.idempotency_service import CarriedOut, IdempotencyService, KeyedCall

#: In microseconds: for so long after a call was carried out its answer may yet be on its way.
_RESULT_GRACE_MICROSECONDS: Final = 2_000_000
_POLL_SECONDS: Final = 0.05

_log = logging.getLogger("dittybag")

#: Calls that go on although nobody waits any more.
_running: set[asyncio.Future[ToolResult]] = set()


class _EncodedResult(Struct):
    """An answer as it is kept."""

    content: tuple[Text, ...]
    structured: Any
    is_error: bool


_decode: Final = msgspec.json.Decoder(_EncodedResult).decode


def keyed_call(owner: str, key: str, ctx: Context, project: int) -> KeyedCall:
    """The call of a tool in a project, by somebody; an empty name is that of the owner of the machine."""
    asked = (ctx.params.get("name"), ctx.params.get("arguments") or {}, project)
    return KeyedCall(owner, key, sha256(msgspec.json.encode(asked, order="sorted")).digest())


async def run_idempotently(
    call: KeyedCall, repeats: IdempotencyService, run: Callable[[], Awaitable[ToolResult]]
) -> ToolResult:
    """What a call comes to: what it came to before, if it has been carried out.

    Raises `KeyReused`, or `AlreadyDone` if the answer is not known any more.
    """
    # It goes on should the client hang up in the middle: when it asks again, the answer is there.
    running = asyncio.ensure_future(_run_or_replay(call, repeats, run))
    _running.add(running)
    running.add_done_callback(_on_done)
    return await asyncio.shield(running)


def _on_done(call: asyncio.Future[ToolResult]) -> None:
    _running.discard(call)
    if not call.cancelled():
        # Perhaps nobody is there to hear of it, which is no reason for a complaint.
        call.exception()


async def _run_or_replay(
    call: KeyedCall, repeats: IdempotencyService, run: Callable[[], Awaitable[ToolResult]]
) -> ToolResult:
    kept, _ = await repeats.find(call)
    if kept is None:
        try:
            result = await run()
        except CarriedOut as before:
            # Another one with this key was faster.
            kept = before.kept
        else:
            if call.is_done:
                await _store_result(call, repeats, result)
            return result
    return await _replay(call, repeats, kept)


async def _store_result(call: KeyedCall, repeats: IdempotencyService, result: ToolResult) -> None:
    texts = tuple(block for block in result.content if isinstance(block, Text))
    answer = msgspec.json.encode(_EncodedResult(texts, result.structured_content, result.is_error))
    if len(answer) > ANSWER_BYTES or len(texts) < len(result.content):
        return
    try:
        await repeats.keep(call, answer)
    except StorageError as error:
        # What was asked for is done, and whoever asked is told so.
        _log.warning("the answer to a call could not be kept on %s", error.where, exc_info=error)


async def _replay(call: KeyedCall, repeats: IdempotencyService, kept: KeptAnswer) -> ToolResult:
    """The answer to a call that was carried out, as soon as it is known."""
    found: KeptAnswer | None = kept
    while found is not None and found.answer is None:
        found, now = await repeats.find(call)
        if found is not None and found.answer is None:
            if not 0 <= now - found.at < _RESULT_GRACE_MICROSECONDS:
                raise AlreadyDone(found.at, found.first, found.last)
            await asyncio.sleep(_POLL_SECONDS)
    if found is None or found.answer is None:
        raise AlreadyDone(kept.at, kept.first, kept.last)
    answer = _decode(found.answer)
    return ToolResult(content=answer.content, structured_content=answer.structured, is_error=answer.is_error)
