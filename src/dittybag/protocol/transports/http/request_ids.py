"""Ids of requests: every answer has one, and so has its line in the log."""

from __future__ import annotations

import os
import re
from functools import partial
from itertools import count
from typing import Any, Final

from dittybag.protocol.current_request import current_request_id
from dittybag.protocol.transports.http.asgi_messages import (
    REQUEST_ID,
    Application,
    AsgiScope,
    CompleteResponse,
    Headers,
    Receive,
    Send,
    SyncHandler,
)

HEADER: Final = b"x-request-id"

_SANE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


class RequestIdMiddleware:
    """An application whose every answer has an id: that of the request if it is sane, or else a new one."""

    def __init__(self, inner: Application) -> None:
        self._inner = inner
        # Counting costs less than chance, and the prefix tells one process from another.
        self._prefix = os.urandom(6).hex().encode()
        self._numbers = count(1)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        request_id = self._chosen(Headers.from_scope(scope)) or self._new()
        before = current_request_id.get()
        current_request_id.set(request_id)
        try:
            await self._run(self._inner, request_id, scope, receive, send)
        finally:
            # Not by a token: a request may begin without a task and end in one, which has another context.
            current_request_id.set(before)

    def wrap_sync(self, inner: SyncHandler) -> SyncHandler:
        """The same for requests that are answered at once."""

        def identified(headers: Headers, body: bytes) -> CompleteResponse | Application | None:
            request_id = self._chosen(headers) or self._new()
            token = current_request_id.set(request_id)
            try:
                answer = inner(headers, body)
            finally:
                current_request_id.reset(token)
            if type(answer) is tuple:
                return answer[0], answer[1], b"%bx-request-id: %b\r\n" % (answer[2], request_id)
            return partial(self._run, answer, request_id) if callable(answer) else None

        return identified

    async def _run(
        self, application: Application, request_id: bytes, scope: AsgiScope, receive: Receive, send: Send
    ) -> None:
        scope[REQUEST_ID] = request_id.decode()

        async def identified(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (HEADER, request_id)]
            await send(message)

        await application(scope, receive, identified)

    def _chosen(self, headers: Headers) -> bytes | None:
        """The id that a request brings, if there is one and it is sane."""
        if self not in headers.cache:
            found = headers.get_all(HEADER)
            is_sane = len(found) == 1 and _SANE.fullmatch(found[0]) is not None
            headers.cache[self] = found[0].encode() if is_sane else None
        chosen: bytes | None = headers.cache[self]
        return chosen

    def _new(self) -> bytes:
        return b"%b-%x" % (self._prefix, next(self._numbers))
