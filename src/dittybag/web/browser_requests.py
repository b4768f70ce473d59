"""Browser requests, responses and routes of the web UI."""

from __future__ import annotations

import re
from binascii import a2b_qp
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from msgspec import Struct

from dittybag.domain.accounts import Principal
from dittybag.domain.errors import (
    Conflict,
    DittybagError,
    Invalid,
    NotAllowed,
    NotFound,
    Problem,
    StorageError,
    clip,
)
from dittybag.domain.projects import Project
from dittybag.http.asgi_messages import AsgiScope, Header, Headers, Receive, Send
from dittybag.http.http_request import HttpRequest
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.web.web_context import WebContext
from dittybag.web.web_sessions import ANONYMOUS

#: Maximum size of a form.
FORM_BYTES: Final = 64 * 1024
#: Maximum size of a form with a long text: the longest prompt fits, even if every character is a line break.
LONG_FORM_BYTES: Final = 8 * 1024 * 1024
#: Other requests get their turn after this many bytes of a form have been decoded.
_DECODED_AT_ONCE: Final = 128 * 1024
_BODY_SECONDS: Final = 30.0
_MAX_FIELDS: Final = 1000

_SESSION_COOKIE: Final = "dittybag-session"
#: Holds a message that the next page shows once.
NOTE_COOKIE: Final = "dittybag-note"
#: Holds the `seq` of the change that the message offers to undo; after an undo, with `.redo`.
UNDO_COOKIE: Final = "dittybag-undo"
_MAX_NOTE_LENGTH: Final = 500


_STATUS_CODES: Final[tuple[tuple[type[DittybagError], int], ...]] = (
    (NotFound, 404),
    (Conflict, 409),
    (Invalid, 422),
    (NotAllowed, 403),
    (StorageError, 503),
)
#: Longer numbers are not parsed.
_MAX_DIGITS: Final = 18
MAX_NUMBER: Final = 10**_MAX_DIGITS - 1
#: Entries of a list on one page.
PER_PAGE: Final = 50
_MAX_PAGE: Final = 10**6

T = TypeVar("T")


class MalformedForm(Exception):
    """A form that cannot be decoded."""


class ListPages(Struct, frozen=True):
    """The pages of a list, counted from 1."""

    current: int
    last: int
    #: Returns the URL of a page.
    link: Callable[[int], str]


class WebRequest:
    """A request from a browser, with its session, its project and its caller."""

    def __init__(self, context: WebContext, http: HttpRequest) -> None:
        self.context = context
        self.method = "GET" if http.method == "HEAD" else http.method
        #: Percent-encoded, for links back to this page.
        self.path = _raw_path(http.scope)
        self.headers = http.headers
        self.session = ANONYMOUS
        self.query_string = http.scope.get("query_string", b"").decode("ascii", "replace")
        #: The decoded path parameters of the route.
        self.parameters: Mapping[str, str] = {}
        #: The form fields by name; the last of several with the same name. `fields` has all of them.
        self.form: Mapping[str, str] = {}
        self.fields: list[tuple[str, str]] = []
        #: Set for pages of a project, which is nearly all of them.
        self._project: Project | None = None
        self._caller: Caller | None = None
        self._http = http

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The query parameters; the last of several with the same name."""
        return dict(_parse_query(self.query_string))

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
        self._project, self._caller = project, caller

    @property
    def has_project(self) -> bool:
        return self._project is not None

    @property
    def origin(self) -> str:
        """The origin of this server as the browser sees it."""
        return f"{self.headers.scheme}://{self.headers.get(b'host') or ''}"

    @property
    def is_fragment(self) -> bool:
        """Whether htmx asks for a fragment of a page."""
        return self.headers.get(b"hx-request") == "true"

    @property
    def client_key(self) -> str:
        """Identifies the client, to share resources fairly: its user, or the web UI of the owner."""
        return self.session.name or "web UI"

    @property
    def can_write(self) -> bool:
        """Whether the session may change prompts and resources of the project."""
        return self._may(lambda principal: principal.changes_project)

    @property
    def can_write_own(self) -> bool:
        """Whether the session may change its own tasks."""
        return self._may(lambda principal: principal.changes_own)

    @property
    def can_purge(self) -> bool:
        """Whether the session may purge what it can change."""
        return self._may(lambda principal: principal.has("admin"))

    def _may(self, is_allowed: Callable[[Principal], bool]) -> bool:
        principal = None if self._caller is None else self._caller.principal
        return not self.context.read_only and (principal is None or is_allowed(principal))

    def int_parameter(self, name: str, default: int = 0, minimum: int = 0, maximum: int = MAX_NUMBER) -> int:
        """Return a query parameter as an integer within bounds, or the default if it is not an integer."""
        number = parse_number(self.query.get(name, ""))
        return default if number is None else min(max(number, minimum), maximum)

    def number_in_path(self, name: str) -> int:
        """Return a path parameter as an integer, or 0, which no task and no change has."""
        return parse_number(self.parameters[name]) or 0

    def number_in_form(self, name: str) -> int:
        """Return a form field as an integer, or 0 if it is not one."""
        return parse_number(self.form.get(name, "")) or 0

    def chosen(self, name: str, choices: Iterable[T], default: T) -> T:
        """Return the choice that a query parameter names, or the default. Raises `Invalid`."""
        value = self.query.get(name, "")
        if not value:
            return default
        valid = list(choices)
        if value not in valid:
            problem = f"{name} must be one of {', '.join(map(str, valid))}, not '{clip(value, 60)}'"
            raise Invalid([Problem(name, problem)])
        return valid[valid.index(value)]

    @property
    def offset(self) -> int:
        """The number of list entries on the pages before the one in the query."""
        return (self.int_parameter("page", 1, 1, _MAX_PAGE) - 1) * PER_PAGE

    def pages(self, total: int) -> ListPages:
        """Return the pages of a list with this many entries."""
        current = self.offset // PER_PAGE + 1
        return ListPages(current, -(-total // PER_PAGE), self._page_link)

    def _page_link(self, number: int) -> str:
        return self.with_query(page=number if number > 1 else None)

    def link(self, path: str, /, **query: object) -> str:
        """Return the URL of a page of this project, as in `request.link("/prompts", page=2)`."""
        return project_link(self.project.name, path, **query)

    def return_link(self, default: str) -> str:
        """Return the page of this project that the form came from; any other URL in it is ignored."""
        home, back = self.link("/"), self.form.get("back", "")
        is_own = back == home or back.startswith((home + "/", home + "?"))
        return back if is_own and back.isascii() and back.isprintable() else self.link(default)

    def with_query(self, **changes: object) -> str:
        """Return the URL of this request with changed query parameters; None removes one."""
        merged = {**self.query, **changes}
        return self.path + _encode_query(merged)

    async def read_form(self, limit: int = FORM_BYTES) -> None:
        """Read and decode the form. Raises `MalformedForm`, `HttpError` or `Disconnected`."""
        self.fields = await _decode_form(await self.body(limit))
        self.form = dict(self.fields)

    async def body(self, limit: int) -> bytes:
        """Return the raw request body. Raises `HttpError` or `Disconnected`."""
        return await self._http.read_body(limit, _BODY_SECONDS)


def parse_number(text: str) -> int | None:
    """Return a number without a sign, or None if the text is not one."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS else None


def status_of(error: DittybagError) -> int:
    return next((status for kind, status in _STATUS_CODES if isinstance(error, kind)), 400)


def project_link(project: str, path: str, /, **query: object) -> str:
    return f"/p/{quote(project, safe='')}{path if path != '/' else ''}{_encode_query(query)}"


def _encode_query(values: Mapping[str, object]) -> str:
    given = {name: value for name, value in values.items() if value is not None and value != ""}
    return "?" + urlencode(given) if given else ""


def _raw_path(scope: AsgiScope) -> str:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0].decode("ascii", "replace")


def _parse_query(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=100, errors="replace")
    except ValueError:
        return []


async def _decode_form(body: bytes) -> list[tuple[str, str]]:
    """Return the fields of a form. Raises `MalformedForm`."""
    # Not with `parse_qsl`, which needs 0.2 seconds for a megabyte of escapes.
    if body.count(b"&") >= _MAX_FIELDS or b"\n" in body or b"\r" in body:
        raise MalformedForm
    pairs = (field.partition(b"=") for field in body.split(b"&") if field)
    return [(await _decode_text(name), await _decode_text(value)) for name, _, value in pairs]


async def _decode_text(escaped: bytes) -> str:
    """Return the text of a field name or value, with line feeds only. Raises `MalformedForm`."""
    parts = []
    begin = 0
    while begin < len(escaped):
        end = begin + _DECODED_AT_ONCE
        if end < len(escaped) and (cut := escaped.rfind(b"%", end - 2, end)) >= 0:
            # Do not split an escape.
            end = cut
        parts.append(_unescape(escaped[begin:end]))
        begin = end
        if begin < len(escaped):
            await asyncio.sleep(0)
    try:
        # Browsers send line breaks as CRLF.
        return b"".join(parts).decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise MalformedForm from error


def _unescape(escaped: bytes) -> bytes:
    """Decode percent escapes and plus signs. Raises `MalformedForm`."""
    # As quoted-printable, which differs in the escape character alone and has a decoder in C.
    quoted = escaped.replace(b"+", b" ").replace(b"=", b"=3D").replace(b"%", b"=")
    found = a2b_qp(quoted)
    # A malformed escape does not lose exactly two characters.
    if len(found) != len(quoted) - 2 * quoted.count(b"="):
        raise MalformedForm
    return found


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
    #: Whether the body is a form, which is read before the handler runs, and its maximum size.
    takes_form: bool = True
    form_bytes: int = FORM_BYTES


def redirect(to: str, note: str = "", *, undo: int = 0, is_redo: bool = False) -> WebResponse:
    """Redirect to another page, which shows `note` once.

    `undo`: the `seq` of the change that the note offers to undo, with the rest of its batch. `is_redo`:
    whether that change is itself an undo.
    """
    headers: list[Header] = [(b"location", to.encode())]
    if note:
        value = quote(note[:_MAX_NOTE_LENGTH], safe="")
        headers.append(cookie(NOTE_COOKIE, value, seconds=60))
    if undo:
        headers.append(cookie(UNDO_COOKIE, f"{undo}.redo" if is_redo else str(undo), seconds=60))
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


def session_cookie(request: WebRequest) -> str:
    """Return the name of the session cookie, with the port: browsers send cookies to all ports of a host."""
    port = re.search(r":(\d+)$", request.origin)
    return _SESSION_COOKIE if port is None else f"{_SESSION_COOKIE}-{port[1]}"


def session_secret(request: WebRequest) -> str | None:
    """Return the secret in the session cookie of a request."""
    return cookies(request.headers).get(session_cookie(request))


def json_response(value: Any, status: int = 200) -> WebResponse:
    """Return a JSON response for a script."""
    from dittybag.protocol.jsonrpc import encode

    return WebResponse(status, encode(value), b"application/json")
