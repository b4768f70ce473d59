"""The HTTP server of a workspace: its middlewares, in order, and the web UI."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from dittybag.protocol.lazy_asyncio import asyncio  # isort: skip  # first: it imports asyncio without TLS

from dittybag.assembly.logging_setup import log_to_stderr
from dittybag.assembly.run_files import registered
from dittybag.assembly.server_setup import check_profile_and_toolsets, open_server, shared_state_key
from dittybag.assembly.store_factory import is_file
from dittybag.assembly.web_setup import WebMiddleware
from dittybag.config import Settings, SettingsError
from dittybag.contracts.profiles import ACCESSES, PROFILES, Access, build_server, notify_on_changes
from dittybag.contracts.tool_specs import ServerScope
from dittybag.http.access_log import AccessLog
from dittybag.http.application import HttpApplication, Middleware
from dittybag.http.authentication import PUBLIC_PATHS, Authentication, LocalTokenVerifier
from dittybag.http.host_checks import LOOPBACK, HostCheck
from dittybag.http.metrics import Metrics
from dittybag.http.request_ids import RequestIds
from dittybag.http.routes import METADATA_PATHS, Routes
from dittybag.http.uvicorn_server import GRACE_SECONDS, listening_socket, new_event_loop, serve
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Observer, Server
from dittybag.web.request_log import RequestLog

if TYPE_CHECKING:
    from dittybag.assembly.oauth_setup import OAuthAuthenticator
    from dittybag.http.idle_timer import IdleTimer

_log = logging.getLogger("dittybag")

#: As many files and connections as a process can have open on every macOS.
_MAX_DESCRIPTORS: Final = 10_240


def serve_http(
    settings: Settings,
    ready: Callable[[int], None],
    print_link: Callable[[int, str], None],
    *,
    offer_browser: Callable[[int, Callable[[], str | None]], None] = lambda port, new_link_key: None,
) -> None:
    """Serve clients and browsers over HTTP until SIGTERM or SIGINT.

    `ready` is called with the port. Without token authentication, `print_link` is called with the port and a
    key that signs in one browser. `offer_browser` is called with the port and a function that returns further
    keys, or `None` with token authentication.
    """
    check_profile_and_toolsets(settings)
    _require_project_name(settings)
    writer = log_to_stderr(access=settings.access_log)
    access_log = None if writer is None else AccessLog(writer.write)
    assert settings.http is not None
    host, listener = settings.http[0], _listen(*settings.http)

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
        async with AsyncExitStack() as stack:
            oauth = _oauth(settings, server_scope, stack)
            metadata = None if oauth is None else oauth.metadata
            routes = Routes(
                servers, server_scope, metrics, version=profile.advertised_version, metadata=metadata
            )
            secret = os.urandom(32).hex()
            web = WebMiddleware(
                settings,
                server_scope,
                request_log,
                (lambda key: print_link(port, key)) if settings.idle_seconds is None else None,
                owner_secret=secret,
                external=oauth,
            )
            idle = _idle_timer(settings)
            middlewares: list[Middleware] = [
                RequestIds(),
                HostCheck(hosts=_hosts(host, settings.allowed_hosts)),
                web,
                *_authentication(settings, server_scope, metrics, oauth),
                routes,
            ]

            async def end() -> None:
                web.close()
                await routes.close(GRACE_SECONDS / 2)

            def begin() -> None:
                if not settings.is_demo:
                    stack.enter_context(registered(settings, port, secret))
                ready(port)
                if idle is None and (key := web.new_link_key()) is not None:
                    print_link(port, key)
                offer_browser(port, web.new_link_key)

            endings = [] if access_log is None else [access_log.add]
            if idle is not None:
                middlewares.insert(0, idle)
                endings.append(idle.end)
                stack.callback(asyncio.create_task(_exit_when_idle(idle)).cancel)
            application = HttpApplication(middlewares, on_end=endings)
            await stack.enter_async_context(server.lifespan())
            for restricted in (other for access, other in servers.items() if access != "write"):
                notify_on_changes(profile, server_scope, restricted)
            if access_log is not None:
                stack.callback(access_log.flush)
            await serve(application, listener, end, on_start=begin)

    with listener, asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run())


def _idle_timer(settings: Settings) -> IdleTimer | None:
    if settings.idle_seconds is None:
        return None
    # Imported here because few servers exit by themselves.
    from dittybag.http.idle_timer import IdleTimer

    return IdleTimer(settings.idle_seconds)


async def _exit_when_idle(idle: IdleTimer) -> None:
    await idle.wait()
    signal.raise_signal(signal.SIGTERM)


def _raise_descriptor_limit() -> None:
    """Allow more open connections: macOS starts programs with a limit of 256 descriptors."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises `SettingsError`."""
    _raise_descriptor_limit()
    try:
        return listening_socket(host, port)
    except OSError as error:
        # The error numbers of getaddrinfo are not those of errno.
        number = None if isinstance(error, socket.gaierror) else error.errno
        reason = os.strerror(number) if number else error.strerror or str(error)
        raise SettingsError(f"cannot listen on {host}:{port}: {reason.lower()}") from error


def _require_project_name(settings: Settings) -> None:
    """Raise `SettingsError` for the project `auto`."""
    if settings.has_automatic_project:
        raise SettingsError(
            "--project auto does not work with --http: a server for several clients does not know their "
            "folders. Use --project NAME; clients can switch to other projects"
        )


async def _log_warnings(settings: Settings, server_scope: ServerScope) -> None:
    """Log warnings of the store that matter for servers with several users."""
    if settings.auth != "off":
        for warning in await server_scope.workspace.store.warnings():
            _log.warning(warning)


def _oauth(settings: Settings, server_scope: ServerScope, stack: AsyncExitStack) -> OAuthAuthenticator | None:
    if settings.auth == "off" or settings.oauth is None:
        return None
    # Imported here because most servers do not use OAuth.
    from dittybag.assembly.oauth_setup import OAuthAuthenticator

    oauth = OAuthAuthenticator(settings.oauth, server_scope.workspace.accounts, server_scope.project)
    stack.push_async_callback(oauth.close)
    return oauth


def _authentication(
    settings: Settings,
    server_scope: ServerScope,
    metrics: Metrics,
    oauth: OAuthAuthenticator | None,
) -> list[Authentication]:
    """The authentication, if the server requires it."""
    if settings.auth == "off":
        return []
    own = LocalTokenVerifier(server_scope.workspace.accounts, server_scope.project)
    limited = partial(Authentication, own, limit=settings.rate_limit, on_limited=metrics.count_rate_limited)
    if oauth is None:
        return [limited()]
    public = (*PUBLIC_PATHS, *METADATA_PATHS)
    return [limited(external=oauth, challenge=oauth.challenge, public_paths=public)]


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
            state_key=shared_state_key(settings),
        )
        for access in ACCESSES
        if access != "write"
    }


def _hosts(host: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """The host names that requests may use."""
    return (*LOOPBACK, f"[{host}]" if ":" in host else host, *allowed)
