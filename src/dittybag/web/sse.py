"""Server-sent events that tell open pages what has changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from dittybag.domain.changes import ChangeNotification
from dittybag.domain.errors import DittybagError
from dittybag.http.asgi_messages import EVENTS, Receive, Send
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.web.browser_requests import StreamingResponse, WebRequest, WebResponse, session_secret
from dittybag.web.template_rendering import SECURITY_HEADERS
from dittybag.web.web_context import WebContext
from dittybag.web.web_sessions import WebSessions

#: Changes within this time are sent as one event.
_BATCH_SECONDS: Final = 0.1
#: How often the session is checked, and how often a heartbeat is sent.
_CHECK_SECONDS: Final = 1.5
_HEARTBEAT_SECONDS: Final = 15.0
_MAX_STREAMS: Final = 1000
#: Of these, one user has at most this many.
MAX_STREAMS_PER_USER: Final = 100


_HEADERS: Final = (
    (b"content-type", EVENTS),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    *SECURITY_HEADERS,
)


class _Subscriber:
    """An open page and the kinds of entities that changed since its last event."""

    def __init__(self, user: str | None, project: int | None) -> None:
        self.user = user
        self.project = project
        self._pending: dict[str, None] = {}
        self._has_pending = asyncio.Event()

    def notify(self, *kinds: str) -> None:
        self._pending.update(dict.fromkeys(kinds))
        self._has_pending.set()

    async def wait(self, seconds: float) -> list[str]:
        """Wait for changes and return their kinds; an empty list after the timeout."""
        try:
            async with asyncio.timeout(seconds):
                await self._has_pending.wait()
        except TimeoutError:
            return []
        await asyncio.sleep(_BATCH_SECONDS)
        kinds, self._pending = list(self._pending), {}
        self._has_pending.clear()
        return kinds


class EventStreams:
    """The event streams of open pages. An event names what changed: entity kinds, `library` or `request`."""

    def __init__(self, context: WebContext, sessions: WebSessions) -> None:
        self._context = context
        self._sessions = sessions
        self._subscribers: set[_Subscriber] = set()
        #: The open pages that show MCP requests.
        self._request_subscribers: set[_Subscriber] = set()
        self._is_closed = False
        context.workspace.store.subscribe(self._on_changes)
        context.libraries.subscribe(lambda: _notify(self._subscribers, "library"))
        context.request_log.subscribe(lambda: _notify(self._request_subscribers, "request"))

    def close(self) -> None:
        self._is_closed = True
        _notify(self._subscribers, "")

    def _on_changes(self, notifications: Sequence[ChangeNotification]) -> None:
        for subscriber in self._subscribers:
            # Task pages show the tasks of all projects.
            kinds = {
                item.kind
                for item in notifications
                if item.kind == "task" or item.project in (None, subscriber.project)
            }
            if kinds:
                subscriber.notify(*kinds)

    async def stream(self, request: WebRequest) -> WebResponse | StreamingResponse:
        """Stream the changes of a project that the session can see."""
        user = request.session.name
        own = sum(subscriber.user == user for subscriber in self._subscribers)
        if own >= MAX_STREAMS_PER_USER or len(self._subscribers) >= _MAX_STREAMS:
            return WebResponse(503, b"Too many pages are open", b"text/plain", ((b"retry-after", b"10"),))
        principal = request.caller.principal
        # Without access to the project, only task changes are sent.
        sees_project = principal is None or principal.sees_project
        subscriber = _Subscriber(user, request.project.id if sees_project else None)

        async def run(receive: Receive, send: Send) -> None:
            self._subscribers.add(subscriber)
            if request.query.get("requests") == "1":
                self._request_subscribers.add(subscriber)
            try:
                await self._send_events(request, subscriber, receive, send)
            finally:
                self._subscribers.discard(subscriber)
                self._request_subscribers.discard(subscriber)

        return run

    async def _send_events(
        self, request: WebRequest, subscriber: _Subscriber, receive: Receive, send: Send
    ) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await send(_body("retry: 1000\n\n"))
        disconnected = asyncio.ensure_future(_wait_for_disconnect(receive))
        idle_seconds = 0.0
        try:
            while not disconnected.done() and not self._is_closed:
                waiting = asyncio.ensure_future(subscriber.wait(_CHECK_SECONDS))
                await asyncio.wait((disconnected, waiting), return_when=asyncio.FIRST_COMPLETED)
                if disconnected.done():
                    waiting.cancel()
                    break
                kinds = [kind for kind in waiting.result() if kind]
                if not await self._is_still_allowed(request):
                    break
                idle_seconds = 0.0 if kinds else idle_seconds + _CHECK_SECONDS
                if kinds:
                    await send(_body(f"event: changes\ndata: {' '.join(kinds)}\n\n"))
                elif idle_seconds >= _HEARTBEAT_SECONDS:
                    idle_seconds = 0.0
                    await send(_body(": heartbeat\n\n"))
        finally:
            disconnected.cancel()
        if not disconnected.done() or disconnected.cancelled():
            await send(_body("", more=False))

    async def _is_still_allowed(self, request: WebRequest) -> bool:
        secret = session_secret(request) or ""
        try:
            found = await self._sessions.find(secret)
            if request.session.principal is None or request.project.id == self._context.project:
                return found.is_signed_in and found.principal == request.session.principal
            principal = await self._sessions.principal_in(secret, request.project.id)
            return found.is_signed_in and principal == request.caller.principal
        except DittybagError:
            # The store cannot be read now; the next check decides.
            return True


def _notify(subscribers: Iterable[_Subscriber], kind: str) -> None:
    for subscriber in subscribers:
        subscriber.notify(kind)


def _body(text: str, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": text.encode(), "more_body": more}


async def _wait_for_disconnect(receive: Receive) -> None:
    """Return when the browser has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        continue
