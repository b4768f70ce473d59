"""The theme of the web UI in one browser, kept in a cookie."""

from __future__ import annotations

from typing import Final

from dittybag.domain.errors import Problem, require
from dittybag.http.asgi_messages import Headers
from dittybag.web.browser_requests import WebRequest, WebResponse, cookie, cookies, redirect

#: The first is the default and needs no cookie.
THEMES: Final = ("auto", "light", "dark")
_COOKIE: Final = "theme"
_COOKIE_SECONDS: Final = 365 * 24 * 3600


def read_theme(headers: Headers) -> str:
    """Return the theme in the cookies of a request; an unknown one counts as the default."""
    theme = cookies(headers).get(_COOKIE, "")
    return theme if theme in THEMES else THEMES[0]


def save_theme(request: WebRequest) -> WebResponse:
    """Store the theme of the form, and show the page again that sent it; htmx applies it itself."""
    theme = request.form.get("theme", "")
    require([Problem("theme", f"theme must be one of {', '.join(THEMES)}")] * (theme not in THEMES))
    seconds = 0 if theme == THEMES[0] else _COOKIE_SECONDS
    stored = cookie(_COOKIE, theme, seconds=seconds, secure=request.origin.startswith("https:"))
    response = WebResponse(204) if request.is_fragment else redirect(_previous_page(request))
    return WebResponse(response.status, headers=(*response.headers, stored))


def _previous_page(request: WebRequest) -> str:
    """Return the path of the page that sent a form, or the first page if it is not known."""
    origin, page = request.origin, request.headers.get(b"referer") or ""
    path = page.removeprefix(origin)
    return path if page.startswith(f"{origin}/") and not path.startswith("//") else "/"
