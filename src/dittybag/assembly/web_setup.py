"""The web UI as middleware. Its modules are imported when the first page is opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from dittybag import __version__
from dittybag.config import Settings, local_user_name
from dittybag.contracts.profiles import PROFILES
from dittybag.contracts.tool_specs import ServerScope
from dittybag.http.authentication import TokenVerifier
from dittybag.http.http_request import HttpRequest
from dittybag.web.request_log import RequestLog
from dittybag.web.web_sessions import WebSessions

if TYPE_CHECKING:
    from dittybag.web.app import WebApp


class WebMiddleware:
    """Serves the web UI, and passes other requests on."""

    def __init__(
        self,
        settings: Settings,
        server_scope: ServerScope,
        request_log: RequestLog,
        print_link: Callable[[str], None] | None,
        *,
        owner_secret: str,
        external: TokenVerifier | None = None,
    ) -> None:
        """`print_link` shows the owner of the machine a sign-in link with this key, if there is a terminal.

        `owner_secret` proves that a request comes from the owner.
        `external` verifies tokens that Dittybag did not issue.
        """
        self._settings = settings
        self._server_scope = server_scope
        self._print_link = print_link
        self._owner_secret = owner_secret
        self._app: WebApp | None = None
        self._needs_token = settings.auth != "off"
        self._sessions = WebSessions(
            server_scope.workspace.store,
            server_scope.workspace.accounts,
            server_scope.project,
            needs_token=self._needs_token,
            verify_foreign=None if external is None else external.verify,
        )
        self._request_log = request_log

    def new_link_key(self) -> str | None:
        """A key that signs in one browser without a token; `None` if tokens are required."""
        return None if self._needs_token else self._sessions.new_link_key()

    def close(self) -> None:
        """Close the event streams of open pages."""
        if self._app is not None:
            self._app.close()

    def __call__(self, request: HttpRequest) -> Awaitable[bool] | None:
        if not _is_web_path(request.method, request.path):
            return None
        if self._app is None:
            self._app = self._build()
        return self._app(request)

    def _build(self) -> WebApp:
        from dittybag.assembly.client_connections import LocalConnections
        from dittybag.assembly.web_maintenance import LocalMaintenance
        from dittybag.web.app import WebApp
        from dittybag.web.library_checks import LibraryChecks
        from dittybag.web.prompt_tags import TagCache
        from dittybag.web.web_context import WebContext

        if not PROFILES[self._settings.profile].uses_libraries:
            # The server does not load libraries for this profile; the web UI shows them.
            self._server_scope.libraries.start()
            self._server_scope.workspace.search.libraries = self._server_scope.libraries
        context = WebContext(
            workspace=self._server_scope.workspace,
            templates=self._server_scope.templates,
            libraries=self._server_scope.libraries,
            library_checks=LibraryChecks(self._server_scope.libraries),
            tags=TagCache(self._server_scope.workspace),
            project=self._server_scope.project,
            version=__version__,
            read_only=self._settings.read_only,
            needs_token=self._needs_token,
            has_terminal=self._print_link is not None,
            person=self._settings.actor or local_user_name(),
            connections=LocalConnections(self._settings, is_local=not self._needs_token),
            maintenance=LocalMaintenance(self._settings),
            request_log=self._request_log,
        )
        return WebApp(context, self._sessions, print_link=self._print_link, owner_secret=self._owner_secret)


def _is_web_path(method: str, path: str) -> bool:
    if path == "/":
        return method == "GET"
    return path.startswith(("/p/", "/static/")) or path in (
        "/sign-in",
        "/sign-in/link",
        "/sign-out",
        "/appearance",
        "/favicon.ico",
    )
