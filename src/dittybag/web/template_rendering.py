"""Renders the HTML templates. Every value is escaped."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, unquote

from minijinja import Environment, Markup

from dittybag.domain.display import format_ago, format_count, format_size
from dittybag.domain.times import iso
from dittybag.http.asgi_messages import Header
from dittybag.web import markdown_html
from dittybag.web.appearance import read_theme
from dittybag.web.browser_requests import (
    NOTE_COOKIE,
    UNDO_COOKIE,
    WebRequest,
    WebResponse,
    cookie,
    cookies,
    parse_number,
    project_link,
)

_STATIC: Final = files("dittybag.web") / "static"
_CONTENT_TYPES: Final = {
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}

#: No external content, no inline scripts or styles, and no framing.
SECURITY_HEADERS: Final[tuple[Header, ...]] = (
    (
        b"content-security-policy",
        (
            b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
            b"connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
            b"frame-ancestors 'none'"
        ),
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_PRIVATE: Final[Header] = (b"cache-control", b"no-store")


class StaticFile:
    """A static file and its content hash."""

    def __init__(self, name: str) -> None:
        self.body = (_STATIC / name).read_bytes()
        self.content_type = _CONTENT_TYPES[name.rpartition(".")[2]]
        self.version = sha256(self.body).hexdigest()[:12]


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Return all static files by name."""
    names = (item.name for item in _STATIC.iterdir())
    return {name: StaticFile(name) for name in names if name.rpartition(".")[2] in _CONTENT_TYPES}


def static_link(name: str) -> str:
    """Return the URL of a static file; it contains the content hash, so that it can be cached forever."""
    return f"/static/{name}?v={static_files()[name].version}"


_FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "relative_time": lambda at: format_ago(at, time.time_ns() // 1000),
    "iso_time": iso,
    "size": format_size,
    "number": lambda number: f"{number:,}",
    "plural": format_count,
    "percent": lambda text: quote(text, safe=""),
    "markdown": lambda text: Markup(markdown_html.markdown(text)),
    "code": lambda text, language="": Markup(markdown_html.code(text, language)),
}


@cache
def _environment() -> Environment:
    folder = files("dittybag.web") / "templates"

    def load(name: str) -> str | None:
        # Template names never come from user input.
        found = folder.joinpath(*name.split("/"))
        return found.read_text("utf-8") if found.is_file() else None

    environment = Environment(
        loader=load, auto_escape_callback=lambda name: True, undefined_behavior="strict"
    )
    for name, function in _FILTERS.items():
        environment.add_filter(name, function)
    environment.add_global("static", static_link)
    environment.add_global("project_link", project_link)
    return environment


def render_page(
    request: WebRequest, template: str, *, status: int = 200, headers: Sequence[Header] = (), **values: Any
) -> WebResponse:
    """Render a template of a page or of a fragment. `headers`: to add to the response."""
    kept = {} if request.is_fragment else cookies(request.headers)
    shown = [cookie(name, "", seconds=0) for name in (NOTE_COOKIE, UNDO_COOKIE) if kept.get(name)]
    seq, _, redo = kept.get(UNDO_COOKIE, "").partition(".")
    html = _environment().render_template(
        template,
        request=request,
        context=request.context,
        session=request.session,
        theme=read_theme(request.headers),
        link=request.link if request.has_project else None,
        here=request.path + (f"?{request.query_string}" if request.query_string else ""),
        note=unquote(kept.get(NOTE_COOKIE, "")),
        undoable=parse_number(seq) or 0,
        is_redo=redo == "redo",
        can_write=request.can_write,
        can_write_own=request.can_write_own,
        can_purge=request.can_purge,
        project=request.project if request.has_project else None,
        **values,
    )
    return WebResponse(status, html.encode("utf-8", "replace"), headers=(_PRIVATE, *shown, *headers))


def render_toast(
    request: WebRequest, text: str, seq: int, *, is_redo: bool = False, headers: Sequence[Header] = ()
) -> WebResponse:
    """Render a toast as a fragment, with a button that undoes the change `seq`, or redoes what it undid."""
    back = request.form.get("back", "")
    return render_page(
        request, "undoable_toast.html", headers=headers, text=text, seq=seq, offers_redo=is_redo, back=back
    )
