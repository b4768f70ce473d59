"""Questions that were sent to the client as requests, until they are answered (handshake revisions)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dittybag.protocol.client_input import Question
from dittybag.protocol.jsonrpc import notification_frame, request_frame
from dittybag.protocol.lazy_tls import asyncio
from dittybag.protocol.request_context import Context
from dittybag.protocol.types import JsonObject
from dittybag.protocol.wire_errors import InputRejected, InvalidParams


class PendingRequests:
    """What one session's client has been asked and has not answered."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[JsonObject]] = {}
        self._last_id = 0

    async def ask(self, ctx: Context, questions: Mapping[str, Question[Any]]) -> dict[str, Any]:
        """Put questions to the client, all at once, and wait for the answers."""
        sent: dict[str, int] = {}
        try:
            for key, question in questions.items():
                sent[key] = self._send(ctx, key, question)
            return {
                key: _parse_response(questions[key], await self._waiting[number])
                for key, number in sent.items()
            }
        finally:
            for number in sent.values():
                self._cancel_request(ctx, number)

    def _send(self, ctx: Context, key: str, question: Question[Any]) -> int:
        self._last_id += 1
        self._waiting[self._last_id] = asyncio.get_running_loop().create_future()
        params = question.params(ctx.revision, key)
        ctx.outlet.send_message(request_frame(self._last_id, question.method, params))
        return self._last_id

    def _cancel_request(self, ctx: Context, number: int) -> None:
        future = self._waiting.pop(number)
        if not future.done() or future.cancelled():
            params = {"requestId": number, "reason": "The request that needed it has ended"}
            ctx.outlet.send_message(notification_frame("notifications/cancelled", params))

    def resolve(self, response: JsonObject) -> None:
        """Take a response of the client. What nobody waits for is none of our business."""
        number = response.get("id")
        future = self._waiting.get(number) if type(number) is int else None
        if future is not None and not future.done():
            future.set_result(response)

    def close(self) -> None:
        """The client will not answer any more."""
        for future in self._waiting.values():
            if not future.done():
                future.set_result({"error": {"code": 0, "message": "The connection was closed"}})


def _parse_response(question: Question[Any], response: JsonObject) -> Any:
    """The answer in a client's response."""
    error = response.get("error")
    if error is not None:
        code, message = (error.get("code"), error.get("message")) if isinstance(error, dict) else (0, None)
        words = message if isinstance(message, str) else "no reason given"
        raise InputRejected(question.method, code if isinstance(code, int) else 0, words)
    try:
        return question.read(response.get("result"))
    except InvalidParams as invalid:
        raise InputRejected(question.method, invalid.code, invalid.message) from None
