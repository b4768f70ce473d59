"""A request of a browser, as pages see it, and their answers."""

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

#: A form is no longer than that: the longest prompt fits, with every character escaped.
FORM_BYTES: Final = 16 * 1024 * 1024
_BODY_SECONDS: Final = 30.0
_MAX_FIELDS: Final = 1000

#: Says something once, on the next page.
NOTE_COOKIE: Final = "dittybag-note"
#: So long a note can be.
_NOTE_LENGTH: Final = 500


class MalformedForm(Exception):
    """A form that no page of ours has sent."""


class WebRequest:
    """What somebody asks for, in which project, and who it is."""

    def __init__(
        self, context: WebContext, method: str, path: str, *, headers: Headers, query: bytes, session: WebSession
    ) -> None:
        self.context = context
        self.method = method
        #: As it stands in the address, for links back here.
        self.path = path
        self.headers = headers
        self.session = session
        self.query_string = query.decode("ascii", "replace")
        self.query: Mapping[str, str] = dict(_pairs(self.query_string))
        #: What stands for the names in braces of the route, decoded.
        self.parameters: Mapping[str, str] = {}
        #: Fields by name; of several with one name, the last. `fields` has them all.
        self.form: Mapping[str, str] = {}
        self.fields: list[tuple[str, str]] = []
        #: Set for pages of a project, that is for nearly all of them.
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
        """On whose behalf this runs, in the project of the page."""
        assert self._caller is not None
        return self._caller

    def set_project(self, project: Project, caller: Caller) -> None:
        """From now on it is known where this is, and for whom."""
        self._project, self._caller = project, caller

    @property
    def has_project(self) -> bool:
        return self._project is not None

    @property
    def origin(self) -> str:
        """Where this server is, as the browser sees it: whoever stands in between says how it was reached."""
        is_secure = self.headers.get(b"x-forwarded-proto") == "https"
        return f"{'https' if is_secure else 'http'}://{self.headers.get(b'host') or ''}"

    @property
    def is_fragment(self) -> bool:
        """Whether only a part of a page is wanted, to be put into one that is there."""
        return self.headers.get(b"hx-request") == "true"

    @property
    def can_write(self) -> bool:
        """Whether the visitor may change what is in the project."""
        if self.context.read_only:
            return False
        principal = None if self._caller is None else self._caller.principal
        return principal is None or principal.changes_project

    @property
    def can_write_own(self) -> bool:
        """Whether the visitor may change tasks."""
        if self.context.read_only:
            return False
        principal = None if self._caller is None else self._caller.principal
        return principal is None or principal.changes_own

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A number of the query, within bounds; the default for anything that is none."""
        text = self.query.get(name, "")
        return min(max(int(text), least), most) if text.isdecimal() and len(text) < 18 else default

    def link(self, path: str, /, **query: object) -> str:
        """The address of a page of this project, like `request.link("/prompts", page=2)`."""
        return project_link(self.project.name, path, **query)

    def with_query(self, **changes: object) -> str:
        """This very address with other values in its query; nothing takes one away."""
        merged = {**self.query, **changes}
        return self.path + _query(merged)

    def set_receive(self, receive: Receive) -> None:
        self._receive = receive

    async def read_form(self) -> None:
        """Read the fields. Raises `MalformedForm`, `HttpError` or `Disconnected`."""
        body = await self.body(FORM_BYTES)
        try:
            self.fields = parse_qsl(
                body.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict"
            )
        except ValueError as error:
            raise MalformedForm from error
        # Browsers send line ends as mail does.
        self.fields = [(name, value.replace("\r\n", "\n")) for name, value in self.fields]
        self.form = dict(self.fields)

    async def body(self, limit: int) -> bytes:
        """The body as it came. Raises `HttpError` or `Disconnected`."""
        assert self._receive is not None
        return await read_body(self.headers, self._receive, limit, _BODY_SECONDS)


def project_link(project: str, path: str, /, **query: object) -> str:
    """The address of a page of a project."""
    return f"/p/{quote(project, safe='')}{path if path != '/' else ''}{_query(query)}"


def _query(values: Mapping[str, object]) -> str:
    given = {name: value for name, value in values.items() if value is not None and value != ""}
    return "?" + urlencode(given) if given else ""


def _pairs(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=100, errors="replace")
    except ValueError:
        return []


class WebResponse(Struct, frozen=True):
    """What a browser is sent."""

    status: int
    body: bytes = b""
    kind: bytes = b"text/html; charset=utf-8"
    headers: tuple[Header, ...] = ()


#: Answers by itself, piece by piece.
StreamingResponse: TypeAlias = Callable[[Receive, Send], Awaitable[None]]
Handler: TypeAlias = Callable[[WebRequest], Awaitable[WebResponse | StreamingResponse]]


class Route(Struct, frozen=True):
    """Who answers what: a path of a project with names in braces, like `/prompts/{id}`."""

    method: str
    pattern: str
    handler: Handler
    #: Whether the body is a form, which is read and checked before.
    takes_form: bool = True


def redirect(to: str, note: str = "") -> WebResponse:
    """Go on to another page, which says `note`."""
    headers: list[Header] = [(b"location", to.encode())]
    if note:
        value = quote(note[:_NOTE_LENGTH], safe="")
        headers.append(cookie(NOTE_COOKIE, value, seconds=60))
    return WebResponse(303, headers=tuple(headers))


def cookie(name: str, value: str, *, seconds: int, secure: bool = False) -> Header:
    """The header that sets a cookie which only our own pages send back, and no script reads."""
    parts = [f"{name}={value}", "Path=/", f"Max-Age={seconds}", "HttpOnly", "SameSite=Strict"]
    return b"set-cookie", "; ".join([*parts, *(["Secure"] if secure else [])]).encode()


def cookies(headers: Headers) -> dict[str, str]:
    """The cookies of a request; the first of each name counts."""
    found: dict[str, str] = {}
    for line in headers.get_all(b"cookie"):
        for item in line[:8192].split(";"):
            name, has_value, value = item.strip().partition("=")
            if has_value:
                found.setdefault(name, value)
    return found


def json_response(value: Any, status: int = 200) -> WebResponse:
    """An answer for a script."""
    from dittybag.protocol.jsonrpc import encode

    return WebResponse(status, encode(value), b"application/json")
