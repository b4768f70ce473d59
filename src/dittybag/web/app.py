"""The ASGI application of the web UI: routing, signing in and error pages."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from hmac import compare_digest
from typing import Final
from urllib.parse import unquote_to_bytes

from dittybag.domain.errors import DittybagError, NotAllowed, ProjectNotFound, StorageError
from dittybag.http.asgi_messages import AsgiScope, Disconnected, HttpError
from dittybag.http.http_request import HttpRequest
from dittybag.services.caller import Caller
from dittybag.web.appearance import save_theme
from dittybag.web.browser_requests import (
    FORM_BYTES,
    MalformedForm,
    Route,
    StreamingResponse,
    WebRequest,
    WebResponse,
    cookie,
    project_link,
    redirect,
    session_cookie,
    session_secret,
    status_of,
)
from dittybag.web.routes import ROUTES
from dittybag.web.sse import EventStreams
from dittybag.web.template_rendering import SECURITY_HEADERS, render_page, static_files
from dittybag.web.web_context import WebContext
from dittybag.web.web_sessions import SESSION_SECONDS, WebSessions, is_own_form

_log = logging.getLogger("dittybag")

#: Names the interface in the actor of a change, as in `ann via web`.
_VIA: Final = "web"
_SIGN_IN: Final = "/sign-in"
#: Browsers request it for documents without a link to an icon.
_ICON: Final = "/favicon.ico"
_USED_LINK: Final = "This link has expired or was already used"
#: The header with the secret of the owner, see `WebApp`.
OWNER_SECRET: Final = b"x-owner-secret"
#: The path of a page of this server.
_OWN_PAGE: Final = r"/(?:p/[!-\[\]-~]{1,2000})?"
#: A longer query of the sign-in page is ignored.
_MAX_SIGN_IN_QUERY: Final = 1000


class WebApp:
    """The web UI as an ASGI application."""

    def __init__(
        self,
        context: WebContext,
        sessions: WebSessions,
        *,
        print_link: Callable[[str], None] | None,
        owner_secret: str = "",
    ) -> None:
        """`print_link` prints a sign-in link with this key in the terminal of the server.

        A request with `owner_secret` gets one without the terminal: only the owner of the machine knows it.
        """
        self._context = context
        self._sessions = sessions
        self._print_link = print_link
        self._owner_secret = owner_secret.encode()
        self._event_streams = EventStreams(context, sessions)
        self._router = _Router([*ROUTES, Route("GET", "/live", self._event_streams.stream)])

    def close(self) -> None:
        self._event_streams.close()

    async def __call__(self, http: HttpRequest) -> bool:
        try:
            response = await self._respond(http)
        except HttpError as refused:
            response = WebResponse(refused.status, str(refused.error).encode(), b"text/plain; charset=utf-8")
        if isinstance(response, WebResponse):
            body = b"" if http.method == "HEAD" else response.body
            headers = (*response.headers, *SECURITY_HEADERS)
            await http.respond(response.status, body, headers, media_type=response.content_type)
        else:
            await response(http.receive, http.send)
        return True

    async def _respond(self, http: HttpRequest) -> WebResponse | StreamingResponse:
        path = http.path
        if path.startswith("/static/"):
            return _static_file(path.removeprefix("/static/"), http.scope)
        if path == _ICON:
            return _static_file("icon.svg", http.scope)
        request = WebRequest(self._context, http)
        try:
            request.session = await self._sessions.find(session_secret(request))
            return await self._dispatch(request, path)
        except DittybagError as error:
            return _error_response(request, error)
        except MalformedForm:
            return _error_page(request, 400, "This form could not be read", "Reload the page and try again.")
        except (Disconnected, HttpError):
            raise
        except Exception:  # noqa: BLE001  # the edge: the user gets an error page, the log gets the traceback
            request_id = http.id.decode()
            _log.exception("page failed: %s %s (request %s)", request.method, path, request_id)
            hint = f"The server log has the details under request {request_id}."
            return _error_page(request, 500, "Something went wrong in Dittybag", hint)

    async def _dispatch(self, request: WebRequest, path: str) -> WebResponse | StreamingResponse:
        if path == _SIGN_IN:
            return await self._sign_in(request)
        if path == "/sign-in/link" and request.method == "POST":
            if (secret := request.headers.get(OWNER_SECRET)) is not None:
                return await self._link_for_owner(request, secret)
            return self._print_new_link(request)
        if not request.session.is_signed_in:
            if request.is_fragment:
                return WebResponse(401, headers=((b"hx-redirect", _SIGN_IN.encode()),))
            return redirect(_SIGN_IN)
        if path == "/sign-out":
            return await self._sign_out(request)
        if path == "/appearance":
            return await self._save_theme(request)
        if path == "/":
            project = await self._context.workspace.store.read(
                lambda transaction: transaction.projects.get(self._context.project), single=True
            )
            if project is None:
                raise ProjectNotFound("")
            return redirect(project_link(project.name, "/"))
        return await self._project_page(request)

    async def _project_page(self, request: WebRequest) -> WebResponse | StreamingResponse:
        segments = _decoded_segments(request.path)
        if segments is None or len(segments) < 2:
            return _error_page(request, 404, "This page does not exist", "")
        await self._open_project(request, segments[1])
        found = self._router.find(request.method, segments[2:])
        if found is None:
            return _error_page(request, 404, "This page does not exist", "")
        if isinstance(found, list):
            return WebResponse(405, headers=((b"allow", ", ".join(found).encode()),))
        route, request.parameters = found
        if request.method != "GET":
            await _require_own_form(request, route)
            if self._context.read_only:
                raise NotAllowed("This server is read-only: it was started with --read-only")
        return await route.handler(request)

    async def _open_project(self, request: WebRequest, name: str) -> None:
        """Set the project and the caller of a request. Raises `ProjectNotFound`, also without access."""
        project = await self._context.workspace.store.read(
            lambda transaction: transaction.projects.by_name(name), single=True
        )
        if project is None:
            raise ProjectNotFound(name)
        principal = request.session.principal
        if principal is None:
            request.set_project(
                project, Caller(project.id, f"{self._context.person} via {_VIA}", interface="web")
            )
            return
        if project.id != self._context.project:
            principal = await self._sessions.principal_in(session_secret(request) or "", project.id)
            if principal is None or not principal.sees_project:
                # Do not reveal that the project exists.
                raise ProjectNotFound(name)
        caller = Caller(
            project.id, f"{principal.user} via {_VIA}", principal.user, principal, interface="web"
        )
        request.set_project(project, caller)

    # Signing in and out

    async def _sign_in(self, request: WebRequest) -> WebResponse:
        if request.method == "GET":
            return self._sign_in_page(request)
        if request.method != "POST":
            return WebResponse(405, headers=((b"allow", b"GET, POST"),))
        _require_same_origin(request)
        await request.read_form()
        if (key := request.form.get("key")) is not None:
            page = self._sessions.link_page(key)
            cookie_value = await self._sessions.sign_in_by_link(key)
            return self._signed_in_response(request, cookie_value, _USED_LINK, page)
        secret = await self._sessions.sign_in_by_token(request.form.get("token", "").strip()[:8192])
        return self._signed_in_response(request, secret, "This token is not valid")

    def _sign_in_page(self, request: WebRequest) -> WebResponse:
        """Show the sign-in page. A link shows a form that the page submits.

        Opening a link does not use it up: programs that prefetch or check links do not submit forms.
        """
        key = request.query.get("key", "") if len(request.query_string) <= _MAX_SIGN_IN_QUERY else ""
        if key and not self._sessions.is_link_valid(key):
            return render_page(request, "sign_in.html", status=403, problem=_USED_LINK, key="")
        return render_page(request, "sign_in.html", problem="", key=key)

    def _signed_in_response(
        self, request: WebRequest, secret: str | None, problem: str, page: str = "/"
    ) -> WebResponse:
        if secret is None:
            return render_page(request, "sign_in.html", status=403, problem=problem, key="")
        is_secure = request.origin.startswith("https:")
        new = cookie(session_cookie(request), secret, seconds=SESSION_SECONDS, secure=is_secure)
        return render_page(request, "welcome.html", headers=(new,), page=page)

    def _print_new_link(self, request: WebRequest) -> WebResponse:
        """Print a new sign-in link in the terminal; the browser that asks for it does not see it."""
        _require_same_origin(request)
        if self._print_link is None or self._context.needs_token:
            return redirect(_SIGN_IN)
        if (key := self._sessions.requested_link_key()) is not None:
            self._print_link(key)
        return redirect(_SIGN_IN, "The newest link is in the terminal of the server")

    async def _link_for_owner(self, request: WebRequest, secret: str) -> WebResponse:
        """Respond with the key of a new sign-in link, which opens the page of the form."""
        _require_same_origin(request)
        is_owner = self._owner_secret and compare_digest(self._owner_secret, secret.encode())
        if not is_owner or self._context.needs_token:
            raise NotAllowed("This secret is not that of the server")
        await request.read_form()
        page = request.form.get("page", "/")
        if not re.fullmatch(_OWN_PAGE, page):
            raise MalformedForm
        return WebResponse(200, self._sessions.new_link_key(page).encode(), b"text/plain; charset=utf-8")

    async def _sign_out(self, request: WebRequest) -> WebResponse:
        if request.method != "POST":
            return WebResponse(405, headers=((b"allow", b"POST"),))
        await _require_own_form(request)
        await self._sessions.sign_out(session_secret(request) or "")
        response = redirect(_SIGN_IN, "You are signed out")
        return WebResponse(
            response.status, headers=(*response.headers, cookie(session_cookie(request), "", seconds=0))
        )

    async def _save_theme(self, request: WebRequest) -> WebResponse:
        """Store the theme of this browser, also on a read-only server, which it does not concern."""
        if request.method != "POST":
            return WebResponse(405, headers=((b"allow", b"POST"),))
        await _require_own_form(request)
        return save_theme(request)


def _require_same_origin(request: WebRequest) -> None:
    """Raise `NotAllowed` for a request from another origin, including another port or scheme of this host."""
    headers = request.headers
    origin = headers.get(b"origin")
    is_foreign = origin is not None and origin.lower() != request.origin.lower()
    if is_foreign or headers.get(b"sec-fetch-site") not in (None, "same-origin", "none"):
        raise NotAllowed("This request came from another website")


async def _require_own_form(request: WebRequest, route: Route | None = None) -> None:
    """Read the form, and raise `NotAllowed` unless it has the CSRF secret of its session."""
    _require_same_origin(request)
    secret_sent = request.headers.get(b"x-form-secret")
    if route is None or route.takes_form:
        await request.read_form(FORM_BYTES if route is None else route.form_bytes)
        secret_sent = secret_sent or request.form.get("form_secret")
    if not is_own_form(request.session, secret_sent):
        raise NotAllowed("This form is out of date: reload the page and try again")


class _Router:
    """Finds the route of a path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        # Routes with fewer parameters match first: /prompts/new before /prompts/{id}.
        self._routes = sorted(
            ((route, [part for part in route.pattern.split("/") if part]) for route in routes),
            key=lambda item: item[0].pattern.count("{"),
        )

    def find(self, method: str, segments: list[str]) -> tuple[Route, dict[str, str]] | list[str] | None:
        """Return the route and its parameters, or the methods that the path allows, or None."""
        others = []
        for route, pattern in self._routes:
            if (values := _match(pattern, segments)) is not None:
                if route.method == method:
                    return route, values
                others.append(route.method)
        return others or None


def _match(pattern: list[str], segments: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    values = {}
    for wanted, found in zip(pattern, segments, strict=True):
        if wanted.startswith("{"):
            values[wanted[1:-1]] = found
        elif wanted != found:
            return None
    return values


def _decoded_segments(path: str) -> list[str] | None:
    """Return the decoded segments of a path, or None if one is not valid UTF-8."""
    try:
        return [unquote_to_bytes(part).decode() for part in path.strip("/").split("/")]
    except UnicodeDecodeError:
        return None


def _error_response(request: WebRequest, error: DittybagError) -> WebResponse:
    status = status_of(error)
    if isinstance(error, StorageError):
        _log.warning("page could not be rendered: %s", error.report)
    hint = "Try again in a moment." if status == 503 else ""
    return _error_page(request, status, str(error), hint)


def _error_page(request: WebRequest, status: int, message: str, hint: str) -> WebResponse:
    template = "error_fragment.html" if request.is_fragment else "error_page.html"
    return render_page(request, template, status=status, message=message, hint=hint, code=status)


def _static_file(name: str, scope: AsgiScope) -> WebResponse:
    found = static_files().get(name)
    if found is None:
        return WebResponse(404)
    is_exact = scope.get("query_string", b"") == b"v=" + found.version.encode()
    cache_control = b"public, max-age=31536000, immutable" if is_exact else b"no-cache"
    return WebResponse(200, found.body, found.content_type, ((b"cache-control", cache_control),))
