"""Renders the HTML templates. Every value is escaped."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, unquote

from minijinja import Environment, Markup

from dittybag.domain.entities import label_of
from dittybag.http.asgi_messages import Header
from dittybag.web import markdown_html
from dittybag.web.browser_requests import NOTE_COOKIE, WebRequest, WebResponse, cookie, cookies, project_link

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


# Template filters and functions


def relative_time(at: int) -> str:
    """Format a time relative to now, as in `3 minutes ago`."""
    seconds = time.time() - at / 1_000_000
    for limit, unit_seconds, unit in (
        (60, 1, "second"),
        (3600, 60, "minute"),
        (86400, 3600, "hour"),
        (30 * 86400, 86400, "day"),
    ):
        if seconds < limit:
            count = max(int(seconds / unit_seconds), 0)
            if unit == "second" and count < 10:
                return "just now"
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return f"{_utc(at):%d %b %Y}"


def iso_time(at: int) -> str:
    """Format a time in ISO 8601, for the attribute `datetime`."""
    return f"{_utc(at):%Y-%m-%dT%H:%M:%SZ}"


def _utc(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1_000_000, UTC)


def format_size(count: int) -> str:
    """Format a number of bytes, as in `1.2 MB`."""
    amount = float(count)
    for unit in ("bytes", "KB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def format_number(count: int) -> str:
    """Format a number with thin spaces between thousands."""
    return f"{count:,}".replace(",", "\u202f")


def format_count(count: int, word: str) -> str:
    """Format a count and its noun, as in `3 prompts`."""
    return f"{format_number(count)} {word}{'' if count == 1 else 's'}"


def _percent(text: str) -> str:
    return quote(text, safe="")


_FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "relative_time": relative_time,
    "iso_time": iso_time,
    "size": format_size,
    "number": format_number,
    "plural": format_count,
    "percent": _percent,
    "label": label_of,
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


def render_page(request: WebRequest, template: str, *, status: int = 200, **values: Any) -> WebResponse:
    """Render a template of a page or of a fragment."""
    note = cookies(request.headers).get(NOTE_COOKIE, "")
    headers = [_PRIVATE]
    if note and not request.is_fragment:
        headers.append(cookie(NOTE_COOKIE, "", seconds=0))
    html = _environment().render_template(
        template,
        request=request,
        context=request.context,
        session=request.session,
        link=request.link if request.has_project else None,
        here=request.path + (f"?{request.query_string}" if request.query_string else ""),
        note="" if request.is_fragment else unquote(note),
        can_write=request.can_write,
        can_write_own=request.can_write_own,
        can_purge=request.can_purge,
        project=request.project if request.has_project else None,
        **values,
    )
    return WebResponse(status, html.encode("utf-8", "replace"), headers=tuple(headers))
