"""Makes HTML of templates and values. Every value is text, and comes out as text."""

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

from dittybag.domain.changes import label_of
from dittybag.protocol.transports.http.asgi_messages import Header
from dittybag.web import markdown_html
from dittybag.web.browser_requests import NOTE_COOKIE, Answer, Request, cookie, cookies, project_link

_STATIC: Final = files("dittybag.web") / "static"
_KINDS: Final = {
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}

#: Nothing is loaded from elsewhere, no script or style stands in a page, and no page is put into another.
SAFETY: Final[tuple[Header, ...]] = (
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
    """A file that is the same for everybody."""

    def __init__(self, name: str) -> None:
        self.body = (_STATIC / name).read_bytes()
        self.kind = _KINDS[name.rpartition(".")[2]]
        self.mark = sha256(self.body).hexdigest()[:12]


@cache
def static_files() -> Mapping[str, StaticFile]:
    """All of them by name."""
    names = (item.name for item in _STATIC.iterdir())
    return {name: StaticFile(name) for name in names if name.rpartition(".")[2] in _KINDS}


def static_link(name: str) -> str:
    """The address of a file, which is another one when the file is."""
    return f"/static/{name}?v={static_files()[name].mark}"


# Filters and functions of templates


def when(at: int) -> str:
    """A time in words that need no time zone, like `3 minutes ago`."""
    seconds = time.time() - at / 1_000_000
    for most, size, unit in (
        (60, 1, "second"),
        (3600, 60, "minute"),
        (86400, 3600, "hour"),
        (30 * 86400, 86400, "day"),
    ):
        if seconds < most:
            count = max(int(seconds / size), 0)
            if unit == "second" and count < 10:
                return "just now"
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return f"{_moment(at):%d %b %Y}"


def moment(at: int) -> str:
    """A time as machines write it, for the attribute `datetime`."""
    return f"{_moment(at):%Y-%m-%dT%H:%M:%SZ}"


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1_000_000, UTC)


def size(count: int) -> str:
    """A number of bytes for people."""
    amount = float(count)
    for unit in ("bytes", "KB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def number(count: int) -> str:
    """A number with thin spaces between thousands."""
    return f"{count:,}".replace(",", "\u202f")


def plural(count: int, word: str) -> str:
    """Like `3 prompts`."""
    return f"{number(count)} {word}{'' if count == 1 else 's'}"


def _percent(text: str) -> str:
    return quote(text, safe="")


_FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "when": when,
    "moment": moment,
    "size": size,
    "number": number,
    "plural": plural,
    "percent": _percent,
    "label": label_of,
    "markdown": lambda text: Markup(markdown_html.markdown(text)),
    "code": lambda text, language="": Markup(markdown_html.code(text, language)),
}


@cache
def _environment() -> Environment:
    folder = files("dittybag.web") / "templates"

    def load(name: str) -> str | None:
        # Only our own templates name others, so no name comes from outside.
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


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> Answer:
    """A whole page, or a part of one if the template is that."""
    note = cookies(request.headers).get(NOTE_COOKIE, "")
    headers = [_PRIVATE]
    if note and not request.is_part:
        headers.append(cookie(NOTE_COOKIE, "", seconds=0))
    html = _environment().render_template(
        template,
        request=request,
        site=request.site,
        visitor=request.visitor,
        link=request.link if request.is_placed else None,
        here=request.path + (f"?{request.query_string}" if request.query_string else ""),
        note="" if request.is_part else unquote(note),
        can_write=request.can_write,
        can_write_own=request.can_write_own,
        project=request.project if request.is_placed else None,
        **values,
    )
    return Answer(status, html.encode("utf-8", "replace"), headers=tuple(headers))
