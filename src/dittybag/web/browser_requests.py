"""Browser requests, responses and routes of the web UI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, quote, urlencode

from msgspec import Struct

from dittybag.domain.projects import Project
from dittybag.protocol.transports.http.asgi_messages import Header, Headers, Receive, Send, read_body
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.web.web_context import WebContext
from dittybag.web.web_sessions import WebSession

#: Maximum size of a form. The longest prompt fits, even with every character escaped.
FORM_BYTES: Final = 16 * 1024 * 1024
_BODY_SECONDS: Final = 30.0
_MAX_FIELDS: Final = 1000

#: Holds a message that the next page shows once.
NOTE_COOKIE: Final = "dittybag-note"
_MAX_NOTE_LENGTH: Final = 500


class MalformedForm(Exception):
    """A form that cannot be decoded."""


class WebRequest:
    """A request from a browser, with its session, its project and its caller."""

    def __init__(
        self,
        context: WebContext,
        method: str,
        path: str,
        *,
        headers: Headers,
        query: bytes,
        session: WebSession,
    ) -> None:
        self.context = context
        self.method = method
        #: Percent-encoded, for links back to this page.
        self.path = path
        self.headers = headers
        self.session = session
        self.query_string = query.decode("ascii", "replace")
        self.query: Mapping[str, str] = dict(_parse_query(self.query_string))
        #: The decoded path parameters of the route.
        self.parameters: Mapping[str, str] = {}
        #: The form fields by name; the last of several with the same name. `fields` has all of them.
        self.form: Mapping[str, str] = {}
        self.fields: list[tuple[str, str]] = []
        #: Set for pages of a project, which is nearly all of them.
        self._project: Project | None = None
        self._caller: Caller | None = None
        self._receive: Receive | None = None

    @property
    def workspace(self) -> Workspace:
        return self.context.workspace

    @property
    def project(self) -> Project:
        assert self._project is not None
        return self._project

    @property
    def caller(self) -> Caller:
        """The caller for use cases, in the project of this page."""
        assert self._caller is not None
        return self._caller

    def set_project(self, project: Project, caller: Caller) -> None:
        """Set the project of this page and the caller."""
        self._project, self._caller = project, caller

    @property
    def has_project(self) -> bool:
        return self._project is not None

    @property
    def origin(self) -> str:
        """The origin of this server as the browser sees it; a proxy sets `X-Forwarded-Proto`."""
        is_secure = self.headers.get(b"x-forwarded-proto") == "https"
        return f"{'https' if is_secure else 'http'}://{self.headers.get(b'host') or ''}"

    @property
    def is_fragment(self) -> bool:
        """Whether htmx asks for a fragment of a page."""
        return self.headers.get(b"hx-request") == "true"

    @property
    def can_write(self) -> bool:
        """Whether the session may change prompts and resources of the project."""
        if self.context.read_only:
            return False
        principal = None if self._caller is None else self._caller.principal
        return principal is None or principal.changes_project

    @property
    def can_write_own(self) -> bool:
        """Whether the session may change its own tasks."""
        if self.context.read_only:
            return False
        principal = None if self._caller is None else self._caller.principal
        return principal is None or principal.changes_own

    @property
    def can_purge(self) -> bool:
        """Whether the session may purge what it can change."""
        if self.context.read_only:
            return False
        principal = None if self._caller is None else self._caller.principal
        return principal is None or principal.has("admin")

    def int_parameter(self, name: str, default: int, minimum: int, maximum: int) -> int:
        """Return a query parameter as an integer within bounds, or the default if it is not an integer."""
        text = self.query.get(name, "")
        return min(max(int(text), minimum), maximum) if text.isdecimal() and len(text) < 18 else default

    def link(self, path: str, /, **query: object) -> str:
        """Return the URL of a page of this project, as in `request.link("/prompts", page=2)`."""
        return project_link(self.project.name, path, **query)

    def with_query(self, **changes: object) -> str:
        """Return the URL of this request with changed query parameters; None removes one."""
        merged = {**self.query, **changes}
        return self.path + _encode_query(merged)

    def set_receive(self, receive: Receive) -> None:
        self._receive = receive

    async def read_form(self) -> None:
        """Read and decode the form. Raises `MalformedForm`, `HttpError` or `Disconnected`."""
        body = await self.body(FORM_BYTES)
        try:
            self.fields = parse_qsl(
                body.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict"
            )
        except ValueError as error:
            raise MalformedForm from error
        # Browsers send line breaks as CRLF.
        self.fields = [(name, value.replace("\r\n", "\n")) for name, value in self.fields]
        self.form = dict(self.fields)

    async def body(self, limit: int) -> bytes:
        """Return the raw request body. Raises `HttpError` or `Disconnected`."""
        assert self._receive is not None
        return await read_body(self.headers, self._receive, limit, _BODY_SECONDS)


def project_link(project: str, path: str, /, **query: object) -> str:
    """Return the URL of a page of a project."""
    return f"/p/{quote(project, safe='')}{path if path != '/' else ''}{_encode_query(query)}"


def _encode_query(values: Mapping[str, object]) -> str:
    given = {name: value for name, value in values.items() if value is not None and value != ""}
    return "?" + urlencode(given) if given else ""


def _parse_query(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=100, errors="replace")
    except ValueError:
        return []


class WebResponse(Struct, frozen=True):
    """An HTTP response with a complete body."""

    status: int
    body: bytes = b""
    content_type: bytes = b"text/html; charset=utf-8"
    headers: tuple[Header, ...] = ()


#: A response that sends its own messages.
StreamingResponse: TypeAlias = Callable[[Receive, Send], Awaitable[None]]
Handler: TypeAlias = Callable[[WebRequest], Awaitable[WebResponse | StreamingResponse]]


class Route(Struct, frozen=True):
    """A handler for a path of a project, with parameters in braces as in `/prompts/{id}`."""

    method: str
    pattern: str
    handler: Handler
    #: Whether the body is a form, which is read before the handler runs.
    takes_form: bool = True


def redirect(to: str, note: str = "") -> WebResponse:
    """Redirect to another page, which shows `note` once."""
    headers: list[Header] = [(b"location", to.encode())]
    if note:
        value = quote(note[:_MAX_NOTE_LENGTH], safe="")
        headers.append(cookie(NOTE_COOKIE, value, seconds=60))
    return WebResponse(303, headers=tuple(headers))


def cookie(name: str, value: str, *, seconds: int, secure: bool = False) -> Header:
    """Return a Set-Cookie header: HttpOnly and SameSite=Strict."""
    parts = [f"{name}={value}", "Path=/", f"Max-Age={seconds}", "HttpOnly", "SameSite=Strict"]
    return b"set-cookie", "; ".join([*parts, *(["Secure"] if secure else [])]).encode()


def cookies(headers: Headers) -> dict[str, str]:
    """Return the cookies of a request; the first of each name wins."""
    found: dict[str, str] = {}
    for line in headers.get_all(b"cookie"):
        for item in line[:8192].split(";"):
            name, has_value, value = item.strip().partition("=")
            if has_value:
                found.setdefault(name, value)
    return found


def json_response(value: Any, status: int = 200) -> WebResponse:
    """Return a JSON response for a script."""
    from dittybag.protocol.jsonrpc import encode

    return WebResponse(status, encode(value), b"application/json")
