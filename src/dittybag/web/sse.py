"""Tells open pages that something has changed, as it happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final

from dittybag.domain.accounts import Principal
from dittybag.domain.changes import ChangeNotification
from dittybag.domain.errors import DittybagError
from dittybag.protocol.lazy_tls import asyncio
from dittybag.protocol.transports.http.asgi_messages import EVENTS, Receive, Send
from dittybag.web.browser_requests import Answer, Request, Streaming, cookies
from dittybag.web.web_context import Site
from dittybag.web.web_sessions import COOKIE, Visitors

#: What comes within such a time is told at once.
_GATHER_SECONDS: Final = 0.1
#: How often it is asked whether the visitor is still welcome, and whether the connection lives.
_WATCH_SECONDS: Final = 1.5
_ALIVE_SECONDS: Final = 15.0
_MAX_LISTENERS: Final = 1000


class _Listener:
    """One open page."""

    def __init__(self, project: int | None) -> None:
        self.project = project
        self._news: dict[str, None] = {}
        self._stirred = asyncio.Event()

    def hear(self, *words: str) -> None:
        self._news.update(dict.fromkeys(words))
        self._stirred.set()

    async def wait(self, seconds: float) -> list[str]:
        """What is new, once there is something or the time is over."""
        try:
            async with asyncio.timeout(seconds):
                await self._stirred.wait()
        except TimeoutError:
            return []
        await asyncio.sleep(_GATHER_SECONDS)
        news, self._news = list(self._news), {}
        self._stirred.clear()
        return news


class Live:
    """Streams of news for open pages: the kinds of things that have changed, `library` and `call`."""

    def __init__(self, site: Site, visitors: Visitors) -> None:
        self._site = site
        self._visitors = visitors
        self._listeners: set[_Listener] = set()
        self._closed = False
        site.workspace.store.subscribe(self._changed)
        site.libraries.subscribe(lambda: self._tell("library"))

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        self._tell("")

    def _changed(self, news: Sequence[ChangeNotification]) -> None:
        for listener in self._listeners:
            kinds = {item.kind for item in news if item.project in (None, listener.project)}
            if kinds:
                listener.hear(*kinds)

    def _tell(self, *words: str) -> None:
        for listener in self._listeners:
            listener.hear(*words)

    async def stream(self, request: Request) -> Answer | Streaming:
        """The news of a project, for the visitor who asks."""
        if len(self._listeners) >= _MAX_LISTENERS:
            return Answer(503, b"Too many pages are open", b"text/plain", ((b"retry-after", b"10"),))
        principal = _principal(request)
        # Whoever may not see the project hears of tasks alone.
        listener = _Listener(request.project.id if principal is None or principal.sees_project else None)
        wants_calls = request.query.get("calls") == "1"

        async def run(receive: Receive, send: Send) -> None:
            with ExitStack() as stack:
                self._listeners.add(listener)
                stack.callback(self._listeners.discard, listener)
                if wants_calls:
                    stack.enter_context(self._site.calls.heard_by(lambda: listener.hear("call")))
                await self._run(request, listener, receive, send)

        return run

    async def _run(self, request: Request, listener: _Listener, receive: Receive, send: Send) -> None:
        head = [(b"content-type", EVENTS), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        say = _speaker(send)
        await say("retry: 1000\n\n")
        going = asyncio.ensure_future(_gone(receive))
        quiet = 0.0
        try:
            while not going.done() and not self._closed:
                waiting = asyncio.ensure_future(listener.wait(_WATCH_SECONDS))
                await asyncio.wait((going, waiting), return_when=asyncio.FIRST_COMPLETED)
                if going.done():
                    waiting.cancel()
                    break
                news = [word for word in waiting.result() if word]
                if not await self._is_welcome(request):
                    break
                quiet = 0.0 if news else quiet + _WATCH_SECONDS
                if news:
                    await say(f"event: news\ndata: {' '.join(news)}\n\n")
                elif quiet >= _ALIVE_SECONDS:
                    quiet = 0.0
                    await say(": still here\n\n")
        finally:
            going.cancel()
        if not going.done() or going.cancelled():
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _is_welcome(self, request: Request) -> bool:
        secret = cookies(request.headers).get(COOKIE, "")
        try:
            found = await self._visitors.find(secret)
            if request.visitor.principal is None or request.project.id == self._site.project:
                return found.is_known and found.principal == request.visitor.principal
            there = await self._visitors.grant_in(secret, request.project.id)
            return found.is_known and there == _principal(request)
        except DittybagError:
            # It cannot be found out now; the next look tells.
            return True


def _principal(request: Request) -> Principal | None:
    """What the visitor may do in the project of the page."""
    return request.caller.principal


def _speaker(send: Send) -> Callable[[str], Any]:
    async def say(text: str) -> None:
        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})

    return say


async def _gone(receive: Receive) -> None:
    """Returns when the browser has gone."""
    while (await receive())["type"] != "http.disconnect":
        continue
