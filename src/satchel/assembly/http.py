"""Everything that is served over HTTP, at which address."""

from __future__ import annotations

import contextlib
import logging
import os
from time import perf_counter
from typing import Any, Final

from satchel.protocol.aio import asyncio  # isort: skip  # first: it imports asyncio without TLS

from satchel import __version__
from satchel.assembly import built, check_names
from satchel.assembly.logs import log_patiently
from satchel.assembly.metrics import Metrics
from satchel.config import Settings, SettingsError
from satchel.contracts.bare_http import BareFace
from satchel.contracts.profiles import PROFILES
from satchel.contracts.stored_sessions import StoredSessions
from satchel.contracts.tools import Place
from satchel.domain.errors import SatchelError
from satchel.protocol import Server
from satchel.protocol.jsonrpc import encode
from satchel.protocol.transports.http import Guard, HttpEndpoint
from satchel.protocol.transports.http.guards import LOOPBACK
from satchel.protocol.transports.http.messages import Disconnected, Receive, Scope, Send, respond
from satchel.protocol.transports.http.serving import GRACE_SECONDS, listening_socket, new_event_loop, serve
from satchel.services.caller import Caller

_access = logging.getLogger("satchel.access")

_PAGE: Final = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Satchel</title>
<h1>Satchel</h1>
<p>This is a server for MCP clients. Give them the address <code>/mcp</code>.</p>
</html>
"""
_PAGE_HEADERS: Final = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
)


class Application:
    """The addresses of a server."""

    def __init__(self, server: Server, place: Place, metrics: Metrics, *, version: str) -> None:
        self.endpoint = HttpEndpoint(server, registry=StoredSessions(place.workspace.store))
        self._bare = BareFace(server, self.endpoint, version)
        self._place = place
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Whoever has gone needs no answer.
        with contextlib.suppress(Disconnected):
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        if path == "/mcp":
            await self.endpoint(scope, receive, send)
        elif path == "/" and method == "POST":
            await self._bare.post(scope, receive, send)
        elif path == "/" and method == "HEAD":
            await self._bare.head(send)
        elif method not in ("GET", "HEAD"):
            allowed = (b"allow", b"GET, HEAD, POST" if path == "/" else b"GET, HEAD")
            await (respond(send, 405, headers=[allowed]) if path in _PAGES else respond(send, 404))
        elif path == "/":
            await respond(send, 200, _PAGE.encode(), b"text/html; charset=utf-8", _PAGE_HEADERS)
        elif path == "/healthz":
            await respond(send, 200, encode({"status": "ok", "version": __version__}))
        elif path == "/readyz":
            await self._ready(send)
        elif path == "/metrics":
            await respond(send, 200, (await self._measured()).encode(), b"text/plain; version=0.0.4")
        else:
            await respond(send, 404, encode({"error": "There is nothing at this address; MCP is at /mcp"}))

    async def _ready(self, send: Send) -> None:
        try:
            await self._place.workspace.store.check()
        except SatchelError as error:
            await respond(send, 503, encode({"status": "not ready", "problem": str(error)}))
        else:
            await respond(send, 200, encode({"status": "ready"}))

    async def _measured(self) -> str:
        stored = {f'kind="{kind}"': count for kind, count in (await self._sizes()).items()}
        endpoint = self.endpoint
        return self._metrics.text(
            {
                "satchel_stored": ("Things in the store.", stored),
                "satchel_open_streams": ("Streams that clients listen to.", {"": endpoint.streams}),
                "satchel_open_sessions": ("Sessions that are open here.", {"": endpoint.sessions}),
                "satchel_renderer_restarts_total": (
                    "Processes that died of a template.",
                    {"": self._place.templates.restarts},
                ),
            }
        )

    async def _sizes(self) -> dict[str, int]:
        """How much there is of everything; nothing if that cannot be read."""
        workspace = self._place.workspace
        try:
            sizes = await workspace.projects.all()
            tasks = (await workspace.tasks.stats(Caller(self._place.project, "metrics"))).total
        except SatchelError:
            return {}
        return {
            "projects": len(sizes),
            "prompts": sum(size.prompts for size in sizes),
            "resources": sum(size.resources for size in sizes),
            "tasks": tasks,
        }


_PAGES: Final = ("/", "/healthz", "/readyz", "/metrics")


def logged(application: Any) -> Any:
    """The application, with a line of JSON in the log for every request."""

    async def logging_application(scope: Scope, receive: Receive, send: Send) -> None:
        begun = perf_counter()
        status = 0

        async def watched(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await application(scope, receive, watched)
        finally:
            client = scope.get("client") or ("", 0)
            line = {
                "client": client[0],
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "ms": round(1000 * (perf_counter() - begun), 3),
            }
            _access.info(encode(line).decode())

    return logging_application


def serve_http(settings: Settings, ready: Any) -> None:
    """Serve clients over HTTP, until SIGTERM or SIGINT. `ready` is told the address."""
    check_names(settings)
    log_patiently(access=settings.access_log)
    assert settings.http is not None
    host, port = settings.http
    try:
        listener = listening_socket(host, port)
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        raise SettingsError(f"nothing can listen at {host}:{port}: {reason}") from error

    async def run() -> None:
        metrics = Metrics()
        place, server = await built(settings, metrics.observe)
        application = Application(
            server, place, metrics, version=PROFILES[settings.profile].advertised_version
        )
        inner = Guard(application, hosts=(*LOOPBACK, host.lower()))
        async with server.lifespan():
            await serve(
                logged(inner) if settings.access_log else inner,
                listener,
                lambda: application.endpoint.close(GRACE_SECONDS / 2),
                begin=lambda: ready(listener.getsockname()[1]),
                at_once={} if settings.access_log else {b"/mcp": inner.at_once(application.endpoint.at_once)},
            )

    with listener, asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run())
