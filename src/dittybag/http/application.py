"""The ASGI application: a list of middlewares, through which every request goes.

A middleware is a function of a request. It returns `None` to pass the request on. If it has to wait, or to
respond, it returns an awaitable; the request is passed on unless the awaited value is true. It refuses a
request by raising `HttpError`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from dittybag.http.asgi_messages import AsgiScope, Disconnected, HttpError, Receive, Send
from dittybag.http.http_request import HttpRequest

Middleware: TypeAlias = Callable[[HttpRequest], Awaitable[bool] | None]


class HttpApplication:
    """Passes each request through the middlewares, in order. The last one responds to every request."""

    def __init__(
        self, middlewares: Sequence[Middleware], *, on_end: Sequence[Callable[[HttpRequest], None]] = ()
    ) -> None:
        """`on_end`: functions that are called after each request."""
        self._middlewares = tuple(middlewares)
        self._on_end = tuple(on_end)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        request = HttpRequest(scope, receive, send)
        try:
            for middleware in self._middlewares:
                pending = middleware(request)
                if pending is not None and await pending:
                    break
            if request.revoked is not None:
                await request.end_revoked()
        except HttpError as error:
            await request.fail(error)
        except Disconnected:
            # It needs no response.
            pass
        finally:
            for call in self._on_end:
                call(request)
