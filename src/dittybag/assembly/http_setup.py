"""Everything that is served over HTTP, at which address."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from dittybag.protocol.lazy_tls import asyncio  # isort: skip  # first: it imports asyncio without TLS

from dittybag import __version__
from dittybag.assembly import built, check_names
from dittybag.assembly.logging_setup import log_patiently
from dittybag.assembly.metrics import Metrics
from dittybag.assembly.store_factory import is_file
from dittybag.assembly.web_setup import Front
from dittybag.config import Settings, SettingsError
from dittybag.contracts.profiles import ACCESSES, PROFILES, Access, access_of, build, follow
from dittybag.contracts.tool_specs import Place
from dittybag.domain.errors import DittybagError
from dittybag.http.authentication import OPEN, Gate, OwnTokens
from dittybag.http.bare_endpoint import BareFace
from dittybag.http.idempotency_header import beside, has_key
from dittybag.http.stored_sessions import StoredSessions
from dittybag.protocol import Context, Server
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.server import Observer
from dittybag.protocol.transports.http import Guard, HttpEndpoint
from dittybag.protocol.transports.http.asgi_messages import (
    ANYBODY,
    ASKER,
    REQUEST_ID,
    Asker,
    AtOnce,
    Disconnected,
    Headers,
    Receive,
    Scope,
    Send,
    Whole,
    respond,
)
from dittybag.protocol.transports.http.asgi_messages import Application as Served
from dittybag.protocol.transports.http.host_checks import LOOPBACK
from dittybag.protocol.transports.http.request_ids import Identified
from dittybag.protocol.transports.http.uvicorn_server import (
    GRACE_SECONDS,
    listening_socket,
    new_event_loop,
    serve,
)
from dittybag.web.request_log import Calls

if TYPE_CHECKING:
    from dittybag.assembly.oauth_setup import OAuthUsers

_log = logging.getLogger("dittybag")
_access = logging.getLogger("dittybag.access")

_METADATA_PAGES: Final = (
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
)


class _Face:
    """Where one server is spoken to."""

    def __init__(self, server: Server, place: Place, version: str) -> None:
        self.endpoint = HttpEndpoint(server, registry=StoredSessions(place.workspace.store))
        self.bare = BareFace(server, self.endpoint, version)


class Application:
    """The addresses of a server, which is another one for those who may do less."""

    def __init__(
        self, servers: Mapping[Access, Server], place: Place, metrics: Metrics, *, version: str
    ) -> None:
        self._faces = {access: _Face(server, place, version) for access, server in servers.items()}
        self._place = place
        self._metrics = metrics
        #: Where clients log in, if there is such a place (RFC 9728).
        self.metadata: bytes | None = None

    def _face(self, asker: Asker) -> _Face:
        return self._faces[access_of(asker.grant)]

    def at_once(self, headers: Headers, body: bytes, asker: Asker = ANYBODY) -> Whole | Served | None:
        """Answer a request to `/mcp` at once, if that can be. See `HttpEndpoint.at_once`."""
        if has_key(headers):
            # On the usual way the key is noticed.
            return None
        return self._face(asker).endpoint.at_once(headers, body, asker)

    async def close(self, grace: float) -> None:
        """End everything: `grace` seconds for what is under way."""
        await asyncio.gather(*(face.endpoint.close(grace) for face in self._faces.values()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Whoever has gone needs no answer.
        with contextlib.suppress(Disconnected), beside(Headers.of(scope)):
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        face = self._face(scope.get(ASKER, ANYBODY))
        if path == "/mcp":
            await face.endpoint(scope, receive, send)
        elif path == "/" and method == "POST":
            await face.bare.post(scope, receive, send)
        elif path == "/" and method == "HEAD":
            await face.bare.head(send)
        elif method not in ("GET", "HEAD"):
            allowed = (b"allow", b"GET, HEAD, POST" if path == "/" else b"GET, HEAD")
            await (respond(send, 405, headers=[allowed]) if path in _PAGES else respond(send, 404))
        elif path == "/healthz":
            await respond(send, 200, encode({"status": "ok", "version": __version__}))
        elif path == "/readyz":
            await self._ready(send)
        elif path in _METADATA_PAGES and self.metadata is not None:
            await respond(send, 200, self.metadata)
        elif path == "/metrics":
            await respond(send, 200, (await self._measured()).encode(), b"text/plain; version=0.0.4")
        else:
            await respond(send, 404, encode({"error": "There is nothing at this address; MCP is at /mcp"}))

    async def _ready(self, send: Send) -> None:
        try:
            await self._place.workspace.store.check()
        except DittybagError as error:
            await respond(send, 503, encode({"status": "not ready", "problem": str(error)}))
        else:
            await respond(send, 200, encode({"status": "ready"}))

    async def _measured(self) -> str:
        stored = {f'kind="{kind}"': count for kind, count in (await self._sizes()).items()}
        endpoints = [face.endpoint for face in self._faces.values()]
        streams = sum(endpoint.streams for endpoint in endpoints)
        sessions = sum(endpoint.sessions for endpoint in endpoints)
        return self._metrics.text(
            {
                "dittybag_stored": ("Things in the store.", stored),
                "dittybag_open_streams": ("Streams that clients listen to.", {"": streams}),
                "dittybag_open_sessions": ("Sessions that are open here.", {"": sessions}),
                "dittybag_renderer_restarts_total": (
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
            tasks = await workspace.tasks.total()
        except DittybagError:
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
                "request_id": scope.get(REQUEST_ID, ""),
                "client": client[0],
                "user": scope.get(ASKER, ANYBODY).principal,
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "ms": round(1000 * (perf_counter() - begun), 3),
            }
            _access.info(encode(line).decode())

    return logging_application


def serve_http(
    settings: Settings, ready: Callable[[int], None], tell_link: Callable[[int, str], None]
) -> None:
    """Serve clients and browsers over HTTP, until SIGTERM or SIGINT.

    `ready` is told the port; `tell_link` the port and a key that lets one browser in, where no token does.
    """
    check_names(settings)
    log_patiently(access=settings.access_log)
    assert settings.http is not None
    host, port = settings.http
    try:
        listener = listening_socket(host, port)
    except OSError as error:
        # The numbers of errors with names of hosts are others.
        number = None if isinstance(error, socket.gaierror) else error.errno
        reason = os.strerror(number) if number else error.strerror or str(error)
        raise SettingsError(f"nothing can listen at {host}:{port}: {reason.lower()}") from error

    async def run() -> None:
        metrics, calls = Metrics("sqlite" if is_file(settings.database) else "postgresql"), Calls()

        def observe(ctx: Context, outcome: str, seconds: float) -> None:
            metrics.observe(ctx.method, outcome, seconds)
            calls.observe(ctx, outcome, seconds)

        place, server = await built(settings, observe)
        await _caution(settings, place)
        port = listener.getsockname()[1]
        profile = PROFILES[settings.profile]
        servers: dict[Access, Server] = {"write": server}
        if settings.auth != "off":
            servers |= _narrower(settings, place, observe)
        application = Application(servers, place, metrics, version=profile.advertised_version)
        inner: Served = application
        at_once: AtOnce = application.at_once
        oauth: OAuthUsers | None = None
        if settings.auth != "off":
            oauth = _oauth(settings, place)
            inner = gate = _gate(application, place, oauth)
            at_once = gate.at_once(application.at_once)
        front = Front(settings, place, inner, calls, lambda key: tell_link(port, key), others=oauth)
        guard = Guard(front, hosts=_hosts(host, settings.allowed_hosts))

        async def end() -> None:
            front.close()
            await application.close(GRACE_SECONDS / 2)

        def begin() -> None:
            ready(port)
            if (key := front.new_link_key()) is not None:
                tell_link(port, key)

        outer = Identified(logged(guard) if settings.access_log else guard)
        async with server.lifespan():
            for access, narrower in servers.items():
                if access != "write":
                    follow(profile, place, narrower)
            await serve(
                outer,
                listener,
                end,
                begin=begin,
                at_once={} if settings.access_log else {b"/mcp": outer.at_once(guard.at_once(at_once))},
            )
            if oauth is not None:
                await oauth.close()

    with listener, asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run())


async def _caution(settings: Settings, place: Place) -> None:
    """Say what whoever serves several users should know."""
    if settings.auth != "off":
        for caution in await place.workspace.store.cautions():
            _log.warning(caution)


def _oauth(settings: Settings, place: Place) -> OAuthUsers | None:
    if settings.oauth is None:
        return None
    # What it needs is loaded only where it is used.
    from dittybag.assembly.oauth_setup import OAuthUsers

    return OAuthUsers(settings.oauth, place.workspace.accounts, place.project)


def _gate(application: Application, place: Place, oauth: OAuthUsers | None) -> Gate:
    own = OwnTokens(place.workspace.accounts, place.project)
    if oauth is None:
        return Gate(application, own)
    application.metadata = oauth.metadata
    return Gate(
        application, own, others=oauth, challenge=oauth.challenge, open_to_all=(*OPEN, *_METADATA_PAGES)
    )


def _narrower(settings: Settings, place: Place, observe: Observer) -> dict[Access, Server]:
    """Servers for those who may do less than everything."""
    return {
        access: build(
            PROFILES[settings.profile],
            place,
            read_only=settings.read_only,
            toolsets=settings.toolsets,
            access=access,
            observe=observe,
        )
        for access in ACCESSES
        if access != "write"
    }


def _hosts(host: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """The names under which this server is known."""
    return (*LOOPBACK, f"[{host}]" if ":" in host else host, *allowed)
