"""Requests from the server to the client that wait for a response (handshake revisions)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dittybag.protocol.client_input import Question
from dittybag.protocol.jsonrpc import notification_frame, request_frame
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.protocol.request_context import Context
from dittybag.protocol.types import JsonObject
from dittybag.protocol.wire_errors import InputRejected, InvalidParams


class PendingRequests:
    """The unanswered requests to the client of one session."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[JsonObject]] = {}
        self._last_id = 0

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    async def ask(self, ctx: Context, questions: Mapping[str, Question[Any]]) -> dict[str, Any]:
        """Send questions to the client, all together, and wait for the answers."""
        sent: dict[str, int] = {}
        try:
            for key, question in questions.items():
                sent[key] = self._send(ctx, key, question)
            # The answers must get through, even if many requests of the client are waiting.
            ctx.session.on_room()
            ctx.session.leave_order(ctx)
            return {
                key: _parse_response(questions[key], await self._waiting[request_id])
                for key, request_id in sent.items()
            }
        finally:
            for request_id in sent.values():
                self._cancel_request(ctx, request_id)

    def _send(self, ctx: Context, key: str, question: Question[Any]) -> int:
        self._last_id += 1
        self._waiting[self._last_id] = asyncio.get_running_loop().create_future()
        params = question.params(ctx.revision, key)
        ctx.outlet.send_message(request_frame(self._last_id, question.method, params))
        return self._last_id

    def _cancel_request(self, ctx: Context, request_id: int) -> None:
        future = self._waiting.pop(request_id)
        if not future.done() or future.cancelled():
            params = {"requestId": request_id, "reason": "The request that needed this has ended"}
            ctx.outlet.send_message(notification_frame("notifications/cancelled", params))

    def resolve(self, response: JsonObject) -> None:
        """Handle a response from the client. Responses to unknown ids are ignored."""
        request_id = response.get("id")
        future = self._waiting.get(request_id) if type(request_id) is int else None
        if future is not None and not future.done():
            future.set_result(response)

    def close(self) -> None:
        """Fail all pending requests, because the connection is closed."""
        for future in self._waiting.values():
            if not future.done():
                future.set_result({"error": {"code": 0, "message": "The connection was closed"}})


def _parse_response(question: Question[Any], response: JsonObject) -> Any:
    """Return the answer in a client's response. Raises `InputRejected` if it is an error or not valid."""
    error = response.get("error")
    if error is not None:
        code, message = (error.get("code"), error.get("message")) if isinstance(error, dict) else (0, None)
        reason = message if isinstance(message, str) else "no reason given"
        raise InputRejected(question.method, code if isinstance(code, int) else 0, reason)
    try:
        return question.read(response.get("result"))
    except InvalidParams as invalid:
        raise InputRejected(question.method, invalid.code, invalid.message) from None
