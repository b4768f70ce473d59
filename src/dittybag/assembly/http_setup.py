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
from dittybag.contracts.profiles import ACCESSES, PROFILES, Access, access_of, build_server, notify_on_changes
from dittybag.contracts.tool_specs import ServerScope
from dittybag.domain.errors import DittybagError
from dittybag.http.authentication import PUBLIC_PATHS, AuthenticationMiddleware, LocalTokenVerifier
from dittybag.http.bare_endpoint import BareEndpoint
from dittybag.http.idempotency_header import has_key, key_from_header
from dittybag.http.stored_sessions import StoreSessionRegistry
from dittybag.protocol import Context, Server
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.server import Observer
from dittybag.protocol.transports.http import HostCheckMiddleware, HttpEndpoint
from dittybag.protocol.transports.http.asgi_messages import (
    ANONYMOUS,
    AUTH_INFO,
    REQUEST_ID,
    AsgiScope,
    AuthInfo,
    CompleteResponse,
    Disconnected,
    Headers,
    Receive,
    Send,
    SyncHandler,
    respond,
)
from dittybag.protocol.transports.http.asgi_messages import Application as Served
from dittybag.protocol.transports.http.host_checks import LOOPBACK
from dittybag.protocol.transports.http.request_ids import RequestIdMiddleware
from dittybag.protocol.transports.http.uvicorn_server import (
    GRACE_SECONDS,
    listening_socket,
    new_event_loop,
    serve,
)
from dittybag.web.request_log import RequestLog

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

    def __init__(self, server: Server, server_scope: ServerScope, version: str) -> None:
        self.endpoint = HttpEndpoint(server, registry=StoreSessionRegistry(server_scope.workspace.store))
        self.bare = BareEndpoint(server, self.endpoint, version)


class Application:
    """The addresses of a server, which is another one for those who may do less."""

    def __init__(
        self, servers: Mapping[Access, Server], server_scope: ServerScope, metrics: Metrics, *, version: str
    ) -> None:
        self._faces = {access: _Face(server, server_scope, version) for access, server in servers.items()}
        self._server_scope = server_scope
        self._metrics = metrics
        #: Where clients log in, if there is such a place (RFC 9728).
        self.metadata: bytes | None = None

    def _face(self, auth: AuthInfo) -> _Face:
        return self._faces[access_of(auth.principal)]

    def handle_sync(
        self, headers: Headers, body: bytes, auth: AuthInfo = ANONYMOUS
    ) -> CompleteResponse | Served | None:
        """Handle a request to `/mcp` synchronously if possible. See `HttpEndpoint.handle_sync`."""
        if has_key(headers):
            # On the usual way the key is noticed.
            return None
        return self._face(auth).endpoint.handle_sync(headers, body, auth)

    async def close(self, grace: float) -> None:
        """End everything: `grace` seconds for what is under way."""
        await asyncio.gather(*(face.endpoint.close(grace) for face in self._faces.values()))

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        # Whoever has gone needs no answer.
        with contextlib.suppress(Disconnected), key_from_header(Headers.from_scope(scope)):
            await self._answer(scope, receive, send)

    async def _answer(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        face = self._face(scope.get(AUTH_INFO, ANONYMOUS))
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
            await self._server_scope.workspace.store.check()
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
                    {"": self._server_scope.templates.restarts},
                ),
            }
        )

    async def _sizes(self) -> dict[str, int]:
        """How much there is of everything; nothing if that cannot be read."""
        workspace = self._server_scope.workspace
        try:
            sizes = await workspace.projects.all()
            tasks = await workspace.tasks.count_all()
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

    async def logging_application(scope: AsgiScope, receive: Receive, send: Send) -> None:
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
                "user": scope.get(AUTH_INFO, ANONYMOUS).principal_id,
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "ms": round(1000 * (perf_counter() - begun), 3),
            }
            _access.info(encode(line).decode())

    return logging_application


def serve_http(
    settings: Settings, ready: Callable[[int], None], print_link: Callable[[int, str], None]
) -> None:
    """Serve clients and browsers over HTTP, until SIGTERM or SIGINT.

    `ready` is told the port; `print_link` the port and a key that lets one browser in, where no token does.
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
        metrics, request_log = Metrics("sqlite" if is_file(settings.database) else "postgresql"), RequestLog()

        def observe(ctx: Context, outcome: str, seconds: float) -> None:
            metrics.observe(ctx.method, outcome, seconds)
            request_log.observe(ctx, outcome, seconds)

        server_scope, server = await built(settings, observe)
        await _caution(settings, server_scope)
        port = listener.getsockname()[1]
        profile = PROFILES[settings.profile]
        servers: dict[Access, Server] = {"write": server}
        if settings.auth != "off":
            servers |= _narrower(settings, server_scope, observe)
        application = Application(servers, server_scope, metrics, version=profile.advertised_version)
        inner: Served = application
        sync_handler: SyncHandler = application.handle_sync
        oauth: OAuthUsers | None = None
        if settings.auth != "off":
            oauth = _oauth(settings, server_scope)
            inner = authentication = _authentication(application, server_scope, oauth)
            sync_handler = authentication.wrap_sync(application.handle_sync)
        front = Front(settings, server_scope, inner, request_log, lambda key: print_link(port, key), others=oauth)
        host_check = HostCheckMiddleware(front, hosts=_hosts(host, settings.allowed_hosts))

        async def end() -> None:
            front.close()
            await application.close(GRACE_SECONDS / 2)

        def begin() -> None:
            ready(port)
            if (key := front.new_link_key()) is not None:
                print_link(port, key)

        outer = RequestIdMiddleware(logged(host_check) if settings.access_log else host_check)
        async with server.lifespan():
            for access, narrower in servers.items():
                if access != "write":
                    notify_on_changes(profile, server_scope, narrower)
            await serve(
                outer,
                listener,
                end,
                on_start=begin,
                sync_handlers={}
                if settings.access_log
                else {b"/mcp": outer.wrap_sync(host_check.wrap_sync(sync_handler))},
            )
            if oauth is not None:
                await oauth.close()

    with listener, asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run())


async def _caution(settings: Settings, server_scope: ServerScope) -> None:
    """Say what whoever serves several users should know."""
    if settings.auth != "off":
        for caution in await server_scope.workspace.store.warnings():
            _log.warning(caution)


def _oauth(settings: Settings, server_scope: ServerScope) -> OAuthUsers | None:
    if settings.oauth is None:
        return None
    # What it needs is loaded only where it is used.
    from dittybag.assembly.oauth_setup import OAuthUsers

    return OAuthUsers(settings.oauth, server_scope.workspace.accounts, server_scope.project)


def _authentication(
    application: Application, server_scope: ServerScope, oauth: OAuthUsers | None
) -> AuthenticationMiddleware:
    own = LocalTokenVerifier(server_scope.workspace.accounts, server_scope.project)
    if oauth is None:
        return AuthenticationMiddleware(application, own)
    application.metadata = oauth.metadata
    return AuthenticationMiddleware(
        application,
        own,
        external=oauth,
        challenge=oauth.challenge,
        public_paths=(*PUBLIC_PATHS, *_METADATA_PAGES),
    )


def _narrower(settings: Settings, server_scope: ServerScope, observe: Observer) -> dict[Access, Server]:
    """Servers for those who may do less than everything."""
    return {
        access: build_server(
            PROFILES[settings.profile],
            server_scope,
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
