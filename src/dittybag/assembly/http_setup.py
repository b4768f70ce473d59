"""The HTTP server: routes, middleware, metrics and the web UI."""

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
from dittybag.assembly.logging_setup import log_to_stderr
from dittybag.assembly.server_setup import check_profile_and_toolsets, open_server
from dittybag.assembly.store_factory import is_file
from dittybag.assembly.web_setup import WebMiddleware
from dittybag.config import Settings, SettingsError
from dittybag.contracts.profiles import ACCESSES, PROFILES, Access, access_of, build_server, notify_on_changes
from dittybag.contracts.tool_specs import ServerScope
from dittybag.domain.errors import DittybagError
from dittybag.http.asgi_messages import (
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
from dittybag.http.asgi_messages import Application as AsgiApplication
from dittybag.http.authentication import PUBLIC_PATHS, AuthenticationMiddleware, LocalTokenVerifier
from dittybag.http.bare_endpoint import BareEndpoint
from dittybag.http.endpoint import HttpEndpoint
from dittybag.http.host_checks import LOOPBACK, HostCheckMiddleware
from dittybag.http.idempotency_header import has_key, key_from_header
from dittybag.http.metrics import Metrics
from dittybag.http.request_ids import RequestIdMiddleware
from dittybag.http.stored_sessions import StoreSessionRegistry
from dittybag.http.unread_responses import UnreadResponses
from dittybag.http.uvicorn_server import (
    GRACE_SECONDS,
    listening_socket,
    new_event_loop,
    serve,
)
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Observer, Server
from dittybag.web.request_log import RequestLog

if TYPE_CHECKING:
    from dittybag.assembly.oauth_setup import OAuthAuthenticator

_log = logging.getLogger("dittybag")
_access = logging.getLogger("dittybag.access")

_METADATA_PATHS: Final = (
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
)


class _Endpoints:
    """The HTTP endpoints of one server."""

    def __init__(
        self, server: Server, server_scope: ServerScope, version: str, unread: UnreadResponses
    ) -> None:
        store = server_scope.workspace.store
        registry = StoreSessionRegistry(store) if store.writable else None
        self.mcp = HttpEndpoint(server, registry=registry, unread=unread)
        self.bare = BareEndpoint(server, self.mcp, version, unread)


class HttpApplication:
    """The routes of a workspace. Each access level has its own server."""

    def __init__(
        self, servers: Mapping[Access, Server], server_scope: ServerScope, metrics: Metrics, *, version: str
    ) -> None:
        unread = UnreadResponses()
        self._endpoints = {
            access: _Endpoints(server, server_scope, version, unread) for access, server in servers.items()
        }
        self._server_scope = server_scope
        self._metrics = metrics
        #: The OAuth protected resource metadata (RFC 9728), or `None` without OAuth.
        self.metadata: bytes | None = None

    def _endpoints_for(self, auth: AuthInfo) -> _Endpoints:
        return self._endpoints[access_of(auth.principal)]

    def handle_sync(
        self, headers: Headers, body: bytes, auth: AuthInfo = ANONYMOUS
    ) -> CompleteResponse | AsgiApplication | None:
        """Handle a request to `/mcp` synchronously if possible. See `HttpEndpoint.handle_sync`."""
        if has_key(headers):
            # `__call__` handles the idempotency key.
            return None
        return self._endpoints_for(auth).mcp.handle_sync(headers, body, auth)

    async def close(self, grace: float) -> None:
        """Close all endpoints; requests in progress have `grace` seconds to finish."""
        await asyncio.gather(*(endpoints.mcp.close(grace) for endpoints in self._endpoints.values()))

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        # A disconnected client needs no response.
        with contextlib.suppress(Disconnected), key_from_header(Headers.from_scope(scope)):
            await self._route(scope, receive, send)

    async def _route(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        endpoints = self._endpoints_for(scope.get(AUTH_INFO, ANONYMOUS))
        if path == "/mcp":
            await endpoints.mcp(scope, receive, send)
        elif path == "/" and method == "POST":
            await endpoints.bare.post(scope, receive, send)
        elif path == "/" and method == "HEAD":
            await endpoints.bare.head(send)
        elif method not in ("GET", "HEAD"):
            allowed = (b"allow", b"GET, HEAD, POST" if path == "/" else b"GET, HEAD")
            await (respond(send, 405, headers=[allowed]) if path in _GET_PATHS else respond(send, 404))
        elif path == "/healthz":
            await respond(send, 200, encode({"status": "ok", "version": __version__}))
        elif path == "/readyz":
            await self._respond_ready(send)
        elif path in _METADATA_PATHS and self.metadata is not None:
            await respond(send, 200, self.metadata)
        elif path == "/metrics":
            await respond(send, 200, (await self._metrics_text()).encode(), b"text/plain; version=0.0.4")
        else:
            await respond(send, 404, encode({"error": "Not found; the MCP endpoint is /mcp"}))

    async def _respond_ready(self, send: Send) -> None:
        try:
            await self._server_scope.workspace.store.check()
        except DittybagError as error:
            await respond(send, 503, encode({"status": "not ready", "problem": str(error)}))
        else:
            await respond(send, 200, encode({"status": "ready"}))

    async def _metrics_text(self) -> str:
        stored = {f'kind="{kind}"': count for kind, count in (await self._count_entities()).items()}
        mcp_endpoints = [endpoints.mcp for endpoints in self._endpoints.values()]
        streams = sum(endpoint.streams for endpoint in mcp_endpoints)
        sessions = sum(endpoint.sessions for endpoint in mcp_endpoints)
        return self._metrics.text(
            {
                "dittybag_stored": ("Stored entities by kind.", stored),
                "dittybag_open_streams": ("Open event streams.", {"": streams}),
                "dittybag_open_sessions": ("Open sessions on this server.", {"": sessions}),
                "dittybag_renderer_restarts_total": (
                    "Restarts of template worker processes.",
                    {"": self._server_scope.templates.restarts},
                ),
            }
        )

    async def _count_entities(self) -> dict[str, int]:
        """The number of entities by kind; empty if the store cannot be read."""
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


_GET_PATHS: Final = ("/", "/healthz", "/readyz", "/metrics")


def log_requests(application: Any) -> Any:
    """Wrap an application to log every request as a line of JSON."""

    async def logging_application(scope: AsgiScope, receive: Receive, send: Send) -> None:
        started = perf_counter()
        status = 0

        async def send_and_record(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await application(scope, receive, send_and_record)
        finally:
            client = scope.get("client") or ("", 0)
            line = {
                "request_id": scope.get(REQUEST_ID, ""),
                "client": client[0],
                "user": scope.get(AUTH_INFO, ANONYMOUS).principal_id,
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "ms": round(1000 * (perf_counter() - started), 3),
            }
            _access.info(encode(line).decode())

    return logging_application


def serve_http(
    settings: Settings, ready: Callable[[int], None], print_link: Callable[[int, str], None]
) -> None:
    """Serve clients and browsers over HTTP until SIGTERM or SIGINT.

    `ready` is called with the port. Without token authentication, `print_link` is called with the port and a
    key that signs in one browser.
    """
    check_profile_and_toolsets(settings)
    log_to_stderr(access=settings.access_log)
    assert settings.http is not None
    host, port = settings.http
    try:
        listener = listening_socket(host, port)
    except OSError as error:
        # The error numbers of getaddrinfo are not those of errno.
        number = None if isinstance(error, socket.gaierror) else error.errno
        reason = os.strerror(number) if number else error.strerror or str(error)
        raise SettingsError(f"cannot listen on {host}:{port}: {reason.lower()}") from error

    async def run() -> None:
        metrics, request_log = Metrics("sqlite" if is_file(settings.database) else "postgresql"), RequestLog()

        def observe(ctx: Context, outcome: str, seconds: float) -> None:
            metrics.observe(ctx.method, outcome, seconds)
            request_log.observe(ctx, outcome, seconds)

        server_scope, server = await open_server(settings, observe)
        await _log_warnings(settings, server_scope)
        port = listener.getsockname()[1]
        profile = PROFILES[settings.profile]
        servers: dict[Access, Server] = {"write": server}
        if settings.auth != "off":
            servers |= _restricted_servers(settings, server_scope, observe)
        application = HttpApplication(servers, server_scope, metrics, version=profile.advertised_version)
        inner: AsgiApplication = application
        sync_handler: SyncHandler = application.handle_sync
        oauth: OAuthAuthenticator | None = None
        if settings.auth != "off":
            oauth = _oauth(settings, server_scope)
            inner = authentication = _authentication(application, server_scope, oauth)
            sync_handler = authentication.wrap_sync(application.handle_sync)
        web = WebMiddleware(
            settings, server_scope, inner, request_log, lambda key: print_link(port, key), external=oauth
        )
        host_check = HostCheckMiddleware(web, hosts=_hosts(host, settings.allowed_hosts))

        async def end() -> None:
            web.close()
            await application.close(GRACE_SECONDS / 2)

        def begin() -> None:
            ready(port)
            if (key := web.new_link_key()) is not None:
                print_link(port, key)

        outer = RequestIdMiddleware(log_requests(host_check) if settings.access_log else host_check)
        async with server.lifespan():
            for access, restricted in servers.items():
                if access != "write":
                    notify_on_changes(profile, server_scope, restricted)
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


async def _log_warnings(settings: Settings, server_scope: ServerScope) -> None:
    """Log warnings of the store that matter for servers with several users."""
    if settings.auth != "off":
        for warning in await server_scope.workspace.store.warnings():
            _log.warning(warning)


def _oauth(settings: Settings, server_scope: ServerScope) -> OAuthAuthenticator | None:
    if settings.oauth is None:
        return None
    # Imported here because most servers do not use OAuth.
    from dittybag.assembly.oauth_setup import OAuthAuthenticator

    return OAuthAuthenticator(settings.oauth, server_scope.workspace.accounts, server_scope.project)


def _authentication(
    application: HttpApplication, server_scope: ServerScope, oauth: OAuthAuthenticator | None
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
        public_paths=(*PUBLIC_PATHS, *_METADATA_PATHS),
    )


def _restricted_servers(
    settings: Settings, server_scope: ServerScope, observe: Observer
) -> dict[Access, Server]:
    """A server for each access level below `write`."""
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
    """The host names that requests may use."""
    return (*LOOPBACK, f"[{host}]" if ":" in host else host, *allowed)
