"""ASGI middleware that gives every response, and its log records, a request id."""

from __future__ import annotations

import os
import re
from functools import partial
from itertools import count
from typing import Any, Final

from dittybag.http.asgi_messages import (
    REQUEST_ID,
    Application,
    AsgiScope,
    CompleteResponse,
    Headers,
    Receive,
    Send,
    SyncHandler,
)
from dittybag.protocol.current_request import current_request_id

HEADER: Final = b"x-request-id"

_VALID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


class RequestIdMiddleware:
    """Adds `X-Request-Id` to every response: the id from the request if it is valid, or a new one."""

    def __init__(self, inner: Application) -> None:
        self._inner = inner
        # A counter is cheaper than a random id. The prefix distinguishes processes.
        self._prefix = os.urandom(6).hex().encode()
        self._counter = count(1)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        request_id = self._client_id(Headers.from_scope(scope)) or self._new_id()
        before = current_request_id.get()
        current_request_id.set(request_id)
        try:
            await self._run(self._inner, request_id, scope, receive, send)
        finally:
            # `reset` would fail: a request may start outside a task and end in one, with another context.
            current_request_id.set(before)

    def wrap_sync(self, inner: SyncHandler) -> SyncHandler:
        """Wrap a synchronous handler."""

        def identified(headers: Headers, body: bytes) -> CompleteResponse | Application | None:
            request_id = self._client_id(headers) or self._new_id()
            token = current_request_id.set(request_id)
            try:
                response = inner(headers, body)
            finally:
                current_request_id.reset(token)
            if type(response) is tuple:
                return response[0], response[1], b"%bx-request-id: %b\r\n" % (response[2], request_id)
            return partial(self._run, response, request_id) if callable(response) else None

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

    def _client_id(self, headers: Headers) -> bytes | None:
        """Return the id that a request carries, or `None` if it has none or it is not valid."""
        if self not in headers.cache:
            found = headers.get_all(HEADER)
            is_valid = len(found) == 1 and _VALID.fullmatch(found[0]) is not None
            headers.cache[self] = found[0].encode() if is_valid else None
        client_id: bytes | None = headers.cache[self]
        return client_id

    def _new_id(self) -> bytes:
        return b"%b-%x" % (self._prefix, next(self._counter))
