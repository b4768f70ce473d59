"""The ASGI application of the web UI: routing, signing in and error pages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from dittybag.domain.errors import (
    Conflict,
    DittybagError,
    Invalid,
    NotAllowed,
    NotFound,
    ProjectNotFound,
    StorageError,
)
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import Project
from dittybag.http.asgi_messages import AsgiScope, Disconnected, HttpError, Send
from dittybag.http.http_request import HttpRequest
from dittybag.services.caller import Caller
from dittybag.web.browser_requests import (
    MalformedForm,
    Route,
    StreamingResponse,
    WebRequest,
    WebResponse,
    cookie,
    cookies,
    project_link,
    redirect,
)
from dittybag.web.routes import ROUTES
from dittybag.web.sse import EventStreams
from dittybag.web.template_rendering import SECURITY_HEADERS, render_page, static_files
from dittybag.web.web_context import WebContext
from dittybag.web.web_sessions import ANONYMOUS, COOKIE, SESSION_SECONDS, WebSessions, is_own_form

_log = logging.getLogger("dittybag")

#: Names the interface in the actor of a change, as in `ann via web`.
_VIA: Final = "web"
_SIGN_IN: Final = "/sign-in"
_USED_LINK: Final = "This link has expired or was already used"
#: A longer query of the sign-in page is ignored.
_MAX_SIGN_IN_QUERY: Final = 1000
_STATUS_CODES: Final[tuple[tuple[type[DittybagError], int], ...]] = (
    (NotFound, 404),
    (Conflict, 409),
    (Invalid, 422),
    (NotAllowed, 403),
    (StorageError, 503),
)


class WebApp:
    """The web UI as an ASGI application."""

    def __init__(
        self,
        context: WebContext,
        sessions: WebSessions,
        *,
        print_link: Callable[[str], None] = lambda key: None,
    ) -> None:
        """`print_link` prints a sign-in link with this key in the terminal of the server."""
        self._context = context
        self._sessions = sessions
        self._print_link = print_link
        self._event_streams = EventStreams(context, sessions)
        self._router = _Router([*ROUTES, Route("GET", "/live", self._event_streams.stream)])

    def close(self) -> None:
        """End all open event streams."""
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
            await response(http.receive, _with_security_headers(http.send))
        return True

    async def _respond(self, http: HttpRequest) -> WebResponse | StreamingResponse:
        scope = http.scope
        path, method = http.path, "GET" if http.method == "HEAD" else http.method
        if path.startswith("/static/"):
            return _static_file(path.removeprefix("/static/"), scope)
        query = scope.get("query_string", b"")
        request = WebRequest(
            self._context, method, _raw_path(scope), headers=http.headers, query=query, session=ANONYMOUS
        )
        request.set_body_reader(http.read_body)
        try:
            request.session = await self._sessions.find(cookies(http.headers).get(COOKIE))
            return await self._dispatch(request, scope, path)
        except DittybagError as error:
            return _error_response(request, error)
        except MalformedForm:
            return _error_page(request, 400, "This form could not be read", "Reload the page and try again.")
        except (Disconnected, HttpError):
            raise
        except Exception:  # noqa: BLE001  # the edge: the user gets an error page, the log gets the traceback
            request_id = http.id.decode()
            _log.exception("page failed: %s %s (request %s)", method, path, request_id)
            hint = f"The server log has the details under request {request_id}."
            return _error_page(request, 500, "Something went wrong in Dittybag", hint)

    async def _dispatch(
        self, request: WebRequest, scope: AsgiScope, path: str
    ) -> WebResponse | StreamingResponse:
        if path == _SIGN_IN:
            return await self._sign_in(request)
        if path == "/sign-in/link" and request.method == "POST":
            return self._print_new_link(request)
        if not request.session.is_signed_in:
            if request.is_fragment:
                return WebResponse(401, headers=((b"hx-redirect", _SIGN_IN.encode()),))
            return redirect(_SIGN_IN)
        if path == "/sign-out":
            return await self._sign_out(request)
        if path == "/":
            project = await self._project(self._context.project)
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
            await self._require_own_form(request, route)
            if self._context.read_only:
                raise NotAllowed("This server is read-only: it was started with --read-only")
        return await route.handler(request)

    async def _open_project(self, request: WebRequest, name: str) -> None:
        """Set the project and the caller of a request. Raises `ProjectNotFound`, also without access."""

        async def work(transaction: Transaction) -> Project | None:
            return await transaction.projects.by_name(name)

        project = await self._context.workspace.store.read(work, single=True)
        session = request.session
        if project is None:
            raise ProjectNotFound(name)
        if session.principal is None:
            caller = Caller(project.id, f"{self._context.person} via {_VIA}", interface="web")
        else:
            principal = session.principal
            if project.id != self._context.project:
                secret = cookies(request.headers)[COOKIE]
                other_principal = await self._sessions.principal_in(secret, project.id)
                if other_principal is None:
                    raise ProjectNotFound(name)
                principal = other_principal
            caller = Caller(
                project.id, f"{principal.user} via {_VIA}", principal.user, principal, interface="web"
            )
            if project.id != self._context.project and not principal.sees_project:
                # Do not reveal that the project exists.
                raise ProjectNotFound(name)
        request.set_project(project, caller)

    async def _project(self, id: int) -> Project:
        async def work(transaction: Transaction) -> Project | None:
            return await transaction.projects.get(id)

        project = await self._context.workspace.store.read(work, single=True)
        if project is None:
            raise ProjectNotFound("")
        return project

    async def _require_own_form(self, request: WebRequest, route: Route) -> None:
        """Raise `NotAllowed` unless the request has the CSRF secret of its session."""
        _require_same_origin(request)
        secret_sent = request.headers.get(b"x-form-secret")
        if route.takes_form:
            await request.read_form(route.form_bytes)
            secret_sent = secret_sent or request.form.get("form_secret")
        if not is_own_form(request.session, secret_sent):
            raise NotAllowed("This form is out of date: reload the page and try again")

    # Signing in and out

    async def _sign_in(self, request: WebRequest) -> WebResponse:
        if request.method == "GET":
            return self._sign_in_page(request)
        if request.method != "POST":
            return WebResponse(405, headers=((b"allow", b"GET, POST"),))
        _require_same_origin(request)
        await request.read_form()
        if (key := request.form.get("key")) is not None:
            return self._signed_in_response(request, await self._sessions.sign_in_by_link(key), _USED_LINK)
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

    def _signed_in_response(self, request: WebRequest, secret: str | None, problem: str) -> WebResponse:
        if secret is None:
            return render_page(request, "sign_in.html", status=403, problem=problem, key="")
        welcome = render_page(request, "welcome.html")
        is_secure = request.origin.startswith("https:")
        new = cookie(COOKIE, secret, seconds=SESSION_SECONDS, secure=is_secure)
        return WebResponse(200, welcome.body, headers=(*welcome.headers, new))

    def _print_new_link(self, request: WebRequest) -> WebResponse:
        """Print a new sign-in link in the terminal; the browser that asks for it does not see it."""
        _require_same_origin(request)
        if not self._context.needs_token and (key := self._sessions.requested_link_key()) is not None:
            self._print_link(key)
        return redirect(_SIGN_IN, "The newest link is in the terminal of the server")

    async def _sign_out(self, request: WebRequest) -> WebResponse:
        if request.method != "POST":
            return WebResponse(405, headers=((b"allow", b"POST"),))
        _require_same_origin(request)
        await request.read_form()
        if not is_own_form(request.session, request.form.get("form_secret")):
            raise NotAllowed("This form is out of date: reload the page and try again")
        await self._sessions.sign_out(cookies(request.headers)[COOKIE])
        response = redirect(_SIGN_IN, "You are signed out")
        return WebResponse(response.status, headers=(*response.headers, cookie(COOKIE, "", seconds=0)))


def _require_same_origin(request: WebRequest) -> None:
    """Raise `NotAllowed` for a request from another origin, including another port or scheme of this host."""
    headers = request.headers
    origin = headers.get(b"origin")
    is_foreign = origin is not None and origin.lower() != request.origin.lower()
    if is_foreign or headers.get(b"sec-fetch-site") not in (None, "same-origin", "none"):
        raise NotAllowed("This request came from another website")


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


def _raw_path(scope: AsgiScope) -> str:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0].decode("ascii", "replace")


def _decoded_segments(path: str) -> list[str] | None:
    """Return the decoded segments of a path, or None if one is not valid UTF-8."""
    try:
        return [unquote_to_bytes(part).decode() for part in path.strip("/").split("/")]
    except UnicodeDecodeError:
        return None


def _error_response(request: WebRequest, error: DittybagError) -> WebResponse:
    status = next((status for kind, status in _STATUS_CODES if isinstance(error, kind)), 400)
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


def _with_security_headers(send: Send) -> Send:
    """Return a `send` that adds the security headers."""

    async def send_secured(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *SECURITY_HEADERS]}
        await send(message)

    return send_secured
