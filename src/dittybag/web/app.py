"""The addresses of the pages: who is let in, and who answers."""

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
from dittybag.protocol.transports.http.asgi_messages import (
    REQUEST_ID,
    Disconnected,
    Headers,
    Receive,
    HttpError,
    AsgiScope,
    Send,
    respond,
)
from dittybag.services.caller import Caller
from dittybag.web.browser_requests import (
    WebResponse,
    MalformedForm,
    WebRequest,
    Route,
    StreamingResponse,
    cookie,
    cookies,
    project_link,
    redirect,
)
from dittybag.web.pages import ROUTES
from dittybag.web.sse import EventStreams
from dittybag.web.template_rendering import SECURITY_HEADERS, render_page, static_files
from dittybag.web.web_context import WebContext
from dittybag.web.web_sessions import COOKIE, ANONYMOUS, SESSION_SECONDS, WebSessions, is_own_form

_log = logging.getLogger("dittybag")

#: Who acts, as the log has it.
_VIA: Final = "web"
_SIGN_IN: Final = "/sign-in"
_STATUSES: Final[tuple[tuple[type[DittybagError], int], ...]] = (
    (NotFound, 404),
    (Conflict, 409),
    (Invalid, 422),
    (NotAllowed, 403),
    (StorageError, 503),
)


class WebApp:
    """An application for browsers."""

    def __init__(
        self, context: WebContext, sessions: WebSessions, *, print_link: Callable[[str], None] = lambda key: None
    ) -> None:
        """`print_link`: shows the owner of the machine a link with a key in it."""
        self._context = context
        self._sessions = sessions
        self._print_link = print_link
        self._live = EventStreams(context, sessions)
        self._routes = _Table([*ROUTES, Route("GET", "/live", self._live.stream)])

    def close(self) -> None:
        """End what is open."""
        self._live.close()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answer(scope, receive)
        except Disconnected:
            return
        except HttpError as refused:
            answer = WebResponse(refused.status, str(refused.error).encode(), b"text/plain; charset=utf-8")
        if not isinstance(answer, WebResponse):
            await answer(receive, _safely(send))
            return
        body = b"" if scope["method"] == "HEAD" else answer.body
        await respond(send, answer.status, body, answer.kind, (*answer.headers, *SECURITY_HEADERS))

    async def _answer(self, scope: AsgiScope, receive: Receive) -> WebResponse | StreamingResponse:
        path, method = scope["path"], "GET" if scope["method"] == "HEAD" else scope["method"]
        if path.startswith("/static/"):
            return _static(path.removeprefix("/static/"), scope)
        headers = Headers.from_scope(scope)
        query = scope.get("query_string", b"")
        request = WebRequest(self._context, method, _raw_path(scope), headers=headers, query=query, session=ANONYMOUS)
        request.set_receive(receive)
        try:
            request.session = await self._sessions.find(cookies(headers).get(COOKIE))
            return await self._found(request, scope, path)
        except DittybagError as error:
            return _failure(request, error)
        except MalformedForm:
            return _problem(
                request, 400, "This form could not be read", "Load the page again, and try once more."
            )
        except (Disconnected, HttpError):
            raise
        except Exception:  # noqa: BLE001  # whatever it is, the person gets a page and the log gets the rest
            request_id = scope.get(REQUEST_ID, "")
            _log.exception("a page failed: %s %s (request %s)", method, path, request_id)
            words = "This is a mistake of Dittybag's, not yours. The server's log has the details"
            return _problem(request, 500, "Something went wrong", f"{words} under {request_id}.")

    async def _found(self, request: WebRequest, scope: AsgiScope, path: str) -> WebResponse | StreamingResponse:
        if path == _SIGN_IN:
            return await self._sign_in(request)
        if path == "/sign-in/link" and request.method == "POST":
            return self._new_link(request)
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
        segments = _segments(request.path)
        if segments is None or len(segments) < 2:
            return _problem(request, 404, "There is no such page", "")
        await self._place(request, segments[1])
        found = self._routes.find(request.method, segments[2:])
        if found is None:
            return _problem(request, 404, "There is no such page", "")
        if isinstance(found, list):
            return WebResponse(405, headers=((b"allow", ", ".join(found).encode()),))
        route, request.parameters = found
        if request.method != "GET":
            await self._require_own_form(request, route)
            if self._context.read_only:
                raise NotAllowed("This server only shows things: it was started with --read-only")
        return await route.handler(request)

    async def _place(self, request: WebRequest, name: str) -> None:
        """Find out in which project this is, and what the visitor may do there."""

        async def work(transaction: Transaction) -> Project | None:
            return await transaction.projects.by_name(name)

        project = await self._context.workspace.store.read(work, single=True)
        session = request.session
        if project is None:
            raise ProjectNotFound(name)
        if session.principal is None:
            caller = Caller(project.id, f"{self._site.person} via {_VIA}")
        else:
            principal = session.principal
            if project.id != self._context.project:
                secret = cookies(request.headers)[COOKIE]
                there = await self._sessions.principal_in(secret, project.id)
                if there is None:
                    raise ProjectNotFound(name)
                principal = there
            caller = Caller(project.id, f"{principal.user} via {_VIA}", principal.user, principal)
            if project.id != self._context.project and not principal.sees_project:
                # A foreign project looks like one that is not there.
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
        """Raises `NotAllowed` for what was not sent by one of the visitor's own pages."""
        _require_same_origin(request)
        shown = request.headers.get(b"x-form-secret")
        if route.takes_form:
            await request.read_form()
            shown = shown or request.form.get("form_secret")
        if not is_own_form(request.session, shown):
            raise NotAllowed("This form is out of date: load the page again, and try once more")

    # Signing in and out

    async def _sign_in(self, request: WebRequest) -> WebResponse:
        if request.method == "GET" and (key := request.query.get("key")):
            secret = await self._sessions.sign_in_by_link(key)
            return self._welcomed(request, secret, "This link was used before, or is too old")
        if request.method == "GET":
            return render_page(request, "sign_in.html", problem="")
        if request.method != "POST":
            return WebResponse(405, headers=((b"allow", b"GET, POST"),))
        _require_same_origin(request)
        await request.read_form()
        secret = await self._sessions.sign_in_by_token(request.form.get("token", "").strip()[:8192])
        return self._welcomed(request, secret, "This token is not valid (any more)")

    def _welcomed(self, request: WebRequest, secret: str | None, problem: str) -> WebResponse:
        if secret is None:
            return render_page(request, "sign_in.html", status=403, problem=problem)
        welcome = render_page(request, "welcome.html")
        is_secure = request.origin.startswith("https:")
        new = cookie(COOKIE, secret, seconds=SESSION_SECONDS, secure=is_secure)
        return WebResponse(200, welcome.body, headers=(*welcome.headers, new))

    def _new_link(self, request: WebRequest) -> WebResponse:
        """Show the owner of the machine another link; whoever asks for it does not see it."""
        _require_same_origin(request)
        if not self._context.needs_token:
            self._print_link(self._sessions.new_link_key())
        return redirect(_SIGN_IN, "A new link is in the terminal of the server")

    async def _sign_out(self, request: WebRequest) -> WebResponse:
        if request.method != "POST":
            return WebResponse(405, headers=((b"allow", b"POST"),))
        _require_same_origin(request)
        await request.read_form()
        if not is_own_form(request.session, request.form.get("form_secret")):
            raise NotAllowed("This form is out of date: load the page again, and try once more")
        await self._sessions.sign_out(cookies(request.headers)[COOKIE])
        gone = redirect(_SIGN_IN, "You are signed out")
        return WebResponse(gone.status, headers=(*gone.headers, cookie(COOKIE, "", seconds=0)))


def _require_same_origin(request: WebRequest) -> None:
    """Raises `NotAllowed` for what a page of somebody else has sent, also one at another port here."""
    headers = request.headers
    origin = headers.get(b"origin")
    own = (headers.get(b"host") or "").lower()
    is_foreign = origin is not None and origin.lower().partition("://")[2] != own
    if is_foreign or headers.get(b"sec-fetch-site") not in (None, "same-origin", "none"):
        raise NotAllowed("This was sent by a page of somebody else")


class _Table:
    """Routes by their paths."""

    def __init__(self, routes: Iterable[Route]) -> None:
        # Those with fewer names in braces go first: /prompts/new before /prompts/{id}.
        self._routes = sorted(
            ((route, [part for part in route.pattern.split("/") if part]) for route in routes),
            key=lambda item: item[0].pattern.count("{"),
        )

    def find(self, method: str, segments: list[str]) -> tuple[Route, dict[str, str]] | list[str] | None:
        """The route and what stands for its names; else the methods there are instead, or nothing."""
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


def _segments(path: str) -> list[str] | None:
    """The parts of a path, decoded; nothing if one of them is no text."""
    try:
        return [unquote_to_bytes(part).decode() for part in path.strip("/").split("/")]
    except UnicodeDecodeError:
        return None


def _failure(request: WebRequest, error: DittybagError) -> WebResponse:
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 400)
    if isinstance(error, StorageError):
        _log.warning("a page could not be made: %s", error, exc_info=error)
    hint = "Try again in a moment." if status == 503 else ""
    return _problem(request, status, str(error), hint)


def _problem(request: WebRequest, status: int, words: str, hint: str) -> WebResponse:
    template = "error_fragment.html" if request.is_fragment else "error_page.html"
    return render_page(request, template, status=status, words=words, hint=hint, code=status)


def _static(name: str, scope: AsgiScope) -> WebResponse:
    found = static_files().get(name)
    if found is None:
        return WebResponse(404)
    is_exact = scope.get("query_string", b"") == b"v=" + found.mark.encode()
    keep = b"public, max-age=31536000, immutable" if is_exact else b"no-cache"
    return WebResponse(200, found.body, found.kind, ((b"cache-control", keep),))


def _safely(send: Send) -> Send:
    """The same with our headers."""

    async def safe(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *SECURITY_HEADERS]}
        await send(message)

    return safe
